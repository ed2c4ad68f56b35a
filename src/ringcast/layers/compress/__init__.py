"""Compression: runs of messages that share what they have in common."""
