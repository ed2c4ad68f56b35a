"""Derived keys are those of RFC 5869, and each purpose has its own."""

from __future__ import annotations

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ringcast.closed.derivation import expand, extract

KEY = bytes(range(32))


def test_derivation_is_hkdf_with_sha256() -> None:
    info = b"\0\0\0\x07purpose\0\0\0\x02me"
    expected = HKDF(SHA256(), 32, b"ringcast closed group 1", info).derive(KEY)
    assert expand(extract(KEY), "purpose", b"me") == expected


def test_a_context_cannot_be_moved_from_one_part_to_the_next() -> None:
    secret = extract(KEY)
    made = {
        expand(secret, "a", b"b", b"c"),
        expand(secret, "a", b"bc"),
        expand(secret, "ab", b"c"),
        expand(secret, "a", b"", b"bc"),
    }
    assert len(made) == 4
