"""A replicated state for members that send numbered messages: the same at all that stay together.

Each sender writes the number of its message to one of its slots, in turn. A slot has one writer and
its numbers go up, so two states that were apart for a while are united by the higher number of each
slot. Each message that one member lacks, and each sender that is gone, is seen in a comparison.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from hashlib import blake2b

from ringcast.core.model.batch import Payload

SLOTS = 16
NOTHING = -1
UNITED = b"state "
"""How a message begins that has the whole state of a member: partitions have merged."""


class Replica:
    """The state of one member."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[str, list[int]] = {}

    def apply(self, payloads: Iterable[Payload]) -> None:
        """Messages were delivered."""
        for payload in map(bytes, payloads):
            if payload.startswith(UNITED):
                self.unite(payload.removeprefix(UNITED))
                continue
            name, _, number = payload.rstrip().partition(b" ")
            if number.isdigit():
                self._write(name.decode(), int(number))

    def unite(self, packed: bytes) -> None:
        """Take over from another state what is newer there."""
        told: dict[str, list[int]] = json.loads(packed)
        for name, slots in told.items():
            for number in slots:
                if number != NOTHING:
                    self._write(name, number)

    def pack(self) -> bytes:
        """The whole state."""
        with self._lock:
            return json.dumps(self._slots, sort_keys=True).encode()

    @property
    def digest(self) -> str:
        """A checksum that is the same for the same state."""
        return blake2b(self.pack(), digest_size=8).hexdigest()

    def __len__(self) -> int:
        """How many senders have written to it."""
        return len(self._slots)

    def _write(self, name: str, number: int) -> None:
        with self._lock:
            slots = self._slots.setdefault(name, [NOTHING] * SLOTS)
            slots[number % SLOTS] = max(slots[number % SLOTS], number)
