"""The ciphers, from the package `cryptography`: imported when a group is closed, and not before."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

__all__ = ["AESGCM", "ChaCha20Poly1305", "InvalidTag"]
