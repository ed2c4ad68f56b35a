"""A hash over everything that happens in a world: two runs with the same hash were the same run."""

from __future__ import annotations

import struct
from hashlib import blake2b

from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event

_RECORD = struct.Struct("!dBIQQQ")
_SENT, _ARRIVED, _GIVEN, _TOLD, _DONE = range(5)
BLOCK = 1 << 16


class TraceHash:
    """Grows with every event: when it was, whose it was, what it was, and a digest of the bytes."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._block = bytearray()

    def sent(self, now: float, member: int, data: bytes) -> None:
        """A member sent a datagram."""
        self._add(_RECORD.pack(now, _SENT, member, len(data), 0, 0))
        self._hash.update(self._block)
        self._block.clear()
        self._hash.update(data)

    def arrived(self, now: float, member: int, datagrams: list[bytes]) -> None:
        """Datagrams reached a member."""
        self._add(_RECORD.pack(now, _ARRIVED, member, len(datagrams), sum(map(len, datagrams)), 0))

    def given(self, now: float, member: int, event: Event) -> None:
        """An application was given an event."""
        if isinstance(event, Batch):
            self._add(_RECORD.pack(now, _GIVEN, member, event.sender, event.first, len(event)))
        else:
            self._add(_RECORD.pack(now, _TOLD, member, 0, 0, 0) + repr(event).encode())

    def done(self, now: float, member: int, what: str) -> None:
        """A member was changed from outside: crash, pause, leave …"""
        self._add(_RECORD.pack(now, _DONE, member, 0, 0, 0) + what.encode())

    def hexdigest(self) -> str:
        """The hash so far."""
        self._hash.update(self._block)
        self._block.clear()
        return self._hash.hexdigest()

    def _add(self, record: bytes) -> None:
        self._block += record
        if len(self._block) > BLOCK:
            self._hash.update(self._block)
            self._block.clear()
