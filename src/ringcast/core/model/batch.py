"""Batches: runs of consecutive messages of one sender, the unit in which everything works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from ringcast.core.model.address import Address

Payload = bytes | memoryview
"""What a message carries inside a stack: bytes, or from `VIEW_PAYLOAD_SIZE` on possibly a
memoryview of what arrived. An application gets bytes, unless it asked for views."""

VIEW_PAYLOAD_SIZE = 4096
"""Payloads smaller than this are always bytes; larger ones may be memoryviews."""


class Message(NamedTuple):
    """One message, as an application that iterates a group or a batch sees it."""

    sender: Address
    seqno: int
    payload: bytes
    """With `views=True` it may be a memoryview: `memoryview(message.payload)` reads both."""


class Batch:
    """Messages first, first + 1, … of one sender. It has one holder at a time, which may keep or
    pass it.

    `first` is 0 until a reliable layer has numbered the batch.
    """

    __slots__ = ("dest", "first", "flags", "nbytes", "payloads", "sender", "sent_at", "size")

    def __init__(
        self,
        sender: Address,
        payloads: Sequence[Payload],
        nbytes: int,
        *,
        dest: Address | None = None,
        first: int = 0,
        flags: int = 0,
        sent_at: int = 0,
        size: int = 0,
    ) -> None:
        self.sender = sender
        """The member that has sent the messages."""
        # Layers use only what bytes and memoryviews have in common; applications get bytes.
        self.payloads: Sequence[bytes] = payloads  # type: ignore[assignment]
        """What the messages carry."""
        self.nbytes = nbytes
        """The bytes of all payloads."""
        self.dest = dest
        """None for the group, else the one member that this is for."""
        self.first = first
        """The seqno of the first message."""
        self.flags = flags
        """What a layer needs to know about all messages of the run (`FRAGMENT`), carried by the
        wire."""
        self.sent_at = sent_at
        """When the sender numbered it, in microseconds of the sender's clock."""
        self.size = size
        """The size of every message, where all are known to have the same; else 0."""

    @property
    def last(self) -> int:
        """The seqno of the last message."""
        return self.first + len(self.payloads) - 1

    def part(self, first: int, last: int) -> Batch:
        """Messages first to last of this batch as a batch of their own."""
        assert self.first <= first <= last <= self.last
        if first == self.first and last == self.last:
            return self
        payloads = self.payloads[first - self.first : last - self.first + 1]
        size = self.size
        return Batch(
            self.sender,
            payloads,
            size * len(payloads) if size else sum(map(len, payloads)),
            dest=self.dest,
            first=first,
            flags=self.flags,
            sent_at=self.sent_at,
            size=size,
        )

    def copy(self) -> Batch:
        """The same messages in a list of their own, for a caller that may change it."""
        return Batch(
            self.sender,
            list(self.payloads),
            self.nbytes,
            dest=self.dest,
            first=self.first,
            flags=self.flags,
            sent_at=self.sent_at,
            size=self.size,
        )

    def with_payloads(self, payloads: Sequence[Payload], first: int | None = None) -> Batch:
        """The same run with other payloads, for a layer that changes them on their way.

        first: the seqno of the first of them, where they are not all messages of this batch.
        """
        return Batch(
            self.sender,
            payloads,
            sum(map(len, payloads)),
            dest=self.dest,
            first=self.first if first is None else first,
            flags=self.flags,
            sent_at=self.sent_at,
        )

    def drop_views(self) -> None:
        """Replace each memoryview by a copy of what it shows; costs nothing where there is none.

        Only for the holder of a batch that no window keeps.
        """
        if self.nbytes >= VIEW_PAYLOAD_SIZE and not 0 < self.size < VIEW_PAYLOAD_SIZE:
            self.payloads = list(map(bytes, self.payloads))  # Bytes stay the same object.

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[Message]:
        sender = self.sender
        for seqno, payload in enumerate(self.payloads, self.first):
            yield Message(sender, seqno, payload)

    def __repr__(self) -> str:
        to = "" if self.dest is None else f" to {self.dest}"
        return f"Batch({self.sender}{to}: {self.first}-{self.last}, {self.nbytes} bytes)"


def common_size(payloads: Sequence[Payload]) -> int:
    """The size of every message, if all have the same; 0 if not, or if there is nothing in them."""
    if not payloads:
        return 0
    size = len(payloads[0])
    for payload in payloads:  # Nothing that Python has is faster, `groupby` and `set` neither.
        if len(payload) != size:
            return 0
    return size


def flat(view: memoryview) -> Payload:
    """What a memoryview shows, byte by byte; a copy where it is small, may change, has gaps, or
    items that only their maker can read."""
    if view.readonly and view.c_contiguous and view.nbytes >= VIEW_PAYLOAD_SIZE:
        with suppress(ValueError, TypeError):
            return view.cast("B")
    return view.tobytes()


FRAGMENT = 1
"""Flag: each payload is a fragment of a larger message, with a fragment's header before it."""
CALL = 4
"""Flag: each payload is a call: delivered in order, answered by a service."""
SERVICE = 8
"""Flag: each payload is a service message, which the application never sees."""
INTERNAL = 32
"""Flag: each payload is a layer's message to its counterparts; no application gave or gets it."""
