"""Fragmentation: a large message as fragments, and back."""
