"""Closed groups: keys, and the seal of each datagram. The only package that uses `cryptography`."""
