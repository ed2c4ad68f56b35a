"""The mutual hello of a connection in a closed group: each side proves that it has the key, now.

    caller: hello, nonce, proof of these
    callee: hello, nonce, proof of these and of all that the caller said
    caller: proof of all of it

The callee says nothing before the caller's first proof is right, and takes nobody's word for an
address before the second one is: a hello that was recorded ends there.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from typing import Protocol

from ringcast.core.model.address import Address
from ringcast.errors import Malformed, Replayed, Unsealed, WrongKey, WrongVersion

VERSION = 1
NONCES_MAX = 4_096
"""Callers' nonces that are remembered, so that their hellos get no second answer."""

_HELLO = struct.Struct("!4sB3xQQ")
_MAGIC, _OPEN_MAGIC = b"RCts", b"RCtc"
_NONCE_SIZE, _PROOF_SIZE = 16, 32
_GREETING_SIZE = _HELLO.size + _NONCE_SIZE + _PROOF_SIZE


class Prover(Protocol):
    """What knows the keys; a GroupSeal is one."""

    tags: tuple[int, ...]

    def prove(self, tag: int, transcript: bytes) -> bytes:
        """Proof that this side has the key with this tag; empty when it has not."""
        ...


class Handshake:
    """One side of the hello, without a network: bytes in, bytes out."""

    def __init__(
        self, prover: Prover, me: Address, is_caller: bool, nonces: dict[bytes, None]
    ) -> None:
        """nonces: those of earlier callers; kept here, and shared by all connections."""
        self._prover = prover
        self._me = me
        self._nonces = nonces
        self._said = self._heard = b""
        self._tag = 0
        self.size = _GREETING_SIZE
        """Bytes that `feed` takes next."""
        self.address: Address | None = None
        """The other side, once it has proved itself."""
        self._is_caller = is_caller
        self.first = b""
        """What a caller says first."""
        if is_caller and prover.tags:  # A fork has none.
            self._tag = prover.tags[0]
            self.first = self._said = self._greeting("call")

    def feed(self, data: bytes) -> bytes:
        """Take what the other side says next; returns what to answer.

        Raises Unsealed, Malformed, WrongVersion, WrongKey, Replayed: the connection is over then.
        """
        assert len(data) == self.size
        if self._is_caller:
            self.address = self._check_greeting(data, "answer", self._said)
            return self._prove("confirm", self._said + data)
        if self._heard:
            self._check(data, "confirm", self._heard + self._said)
            self.address = Address(_HELLO.unpack_from(self._heard)[3])
            return b""
        self._check_greeting(data, "call")
        nonce = data[_HELLO.size : -_PROOF_SIZE]
        if nonce in self._nonces:
            raise Replayed("a hello that was answered before")
        self._nonces[nonce] = None
        if len(self._nonces) > NONCES_MAX:
            del self._nonces[next(iter(self._nonces))]
        self._heard, self.size = data, _PROOF_SIZE
        self._said = self._greeting("answer", data)
        return self._said

    def _greeting(self, role: str, before: bytes = b"") -> bytes:
        hello = _HELLO.pack(_MAGIC, VERSION, self._tag, self._me)
        hello += secrets.token_bytes(_NONCE_SIZE)
        return hello + self._prove(role, before + hello)

    def _check_greeting(self, data: bytes, role: str, before: bytes = b"") -> Address:
        magic, version, tag, address = _HELLO.unpack_from(data)
        if magic == _OPEN_MAGIC:
            raise Unsealed("the other side has no key")
        if magic != _MAGIC:
            raise Malformed("not a hello")
        if version != VERSION:
            raise WrongVersion(f"version {version}, this is {VERSION}")
        if self._is_caller and tag != self._tag:
            raise WrongKey("an answer with another key")
        self._tag = tag
        self._check(data[-_PROOF_SIZE:], role, before + data[:-_PROOF_SIZE])
        return Address(address)

    def _prove(self, role: str, transcript: bytes) -> bytes:
        return self._prover.prove(self._tag, role.encode() + transcript)

    def _check(self, proof: bytes, role: str, transcript: bytes) -> None:
        expected = self._prove(role, transcript)
        if not expected or not hmac.compare_digest(proof, expected):
            raise WrongKey("the other side has another key, or none")
