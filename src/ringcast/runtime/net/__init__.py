"""Transports: UDP, TCP and a network inside one process."""
