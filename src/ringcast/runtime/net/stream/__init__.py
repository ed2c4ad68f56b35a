"""Connections of a stream: why they end, and TLS."""
