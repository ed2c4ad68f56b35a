"""Keys for one purpose each, derived from a group's key by HKDF with SHA-256 (RFC 5869)."""

from __future__ import annotations

import hmac

_SALT = b"ringcast closed group 1"
_HASH = "sha256"


def extract(key: bytes) -> bytes:
    """HKDF-Extract: the pseudorandom key from which all others are expanded."""
    return hmac.digest(_SALT, key, _HASH)


def expand(secret: bytes, purpose: str, *context: bytes) -> bytes:
    """HKDF-Expand: 32 bytes for a purpose; each part of the context counts with its length."""
    parts = [purpose.encode(), *context]
    info = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.digest(secret, info + b"\x01", _HASH)
