"""Connections of a stream: a table of them, why they end, and TLS."""
