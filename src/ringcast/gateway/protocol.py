"""What clients and gateways say to each other, over a stream socket of this machine.

    a client      u32 count · count × u32 lengths · the messages, one behind the other
                  u32 0: tell me when all members have all of them
    the gateway   u32 length · a sentence that says what is wrong; empty when nothing is
                  u32 4294967295: still busy, and getting on

The gateway speaks once when it is in the group, once for each 0, and at once when something goes
wrong; after that it hears nothing more. All numbers are little-endian.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ringcast import errors
from ringcast.core.model.batch import Payload

NUMBER = struct.Struct("<I")
COUNT_MAX = 65_536
"""Messages in one frame."""
BYTES_MAX = 1 << 31
"""Bytes in one frame: one message of the largest kind that a stack may carry."""
BUSY = NUMBER.pack((1 << 32) - 1)
SENTENCE_MAX = 65_536
"""Bytes of a sentence."""

KINDS = {
    kind.__name__: kind
    for kind in (
        errors.ConfigError,
        errors.JoinFailed,
        errors.Timeout,
        errors.Closed,
        errors.TooLarge,
        errors.LocalError,
    )
}
"""The errors that travel, by name."""


class Disconnected(Exception):
    """The other side has closed the connection."""


def frame_of(messages: Sequence[Payload]) -> bytes:
    """Messages as one frame."""
    lengths = list(map(len, messages))
    return b"".join((struct.pack(f"<{len(lengths) + 1}I", len(lengths), *lengths), *messages))


def read_frame(connection: socket.socket) -> list[Payload]:
    """The messages of the next frame; [] for the question. Raises Disconnected, LocalError."""
    (count,) = NUMBER.unpack(read(connection, NUMBER.size))
    if count > COUNT_MAX:
        raise errors.LocalError(f"a frame of {count} messages: the client speaks another language")
    lengths = struct.unpack(f"<{count}I", read(connection, 4 * count))
    if sum(lengths) > BYTES_MAX:
        raise errors.LocalError(f"a frame of {sum(lengths)} bytes: send less at once")
    content = bytes(read(connection, sum(lengths)))
    ends = [0, *accumulate(lengths)]
    return [content[start:end] for start, end in pairwise(ends)]


def reply_of(error: Exception | None) -> bytes:
    """What the gateway says."""
    kind = type(error).__name__ if type(error).__name__ in KINDS else errors.LocalError.__name__
    sentence = b"" if error is None else f"{kind}: {error}".encode(errors="replace")[:SENTENCE_MAX]
    return NUMBER.pack(len(sentence)) + sentence


def read_reply(connection: socket.socket) -> None:
    """The gateway's answer, however long it is busy. Raises what `read_status` raises."""
    while read_status(connection):
        pass


def read_status(connection: socket.socket) -> bool:
    """Hear what the gateway says; whether it is only busy.

    Raises the error that it tells, TimeoutError when it says nothing, or Disconnected.
    """
    head = read(connection, NUMBER.size)
    if head == BUSY:
        return True
    (length,) = NUMBER.unpack(head)
    if not length:
        return False
    text = read(connection, min(length, SENTENCE_MAX)).decode(errors="replace")
    kind, _, sentence = text.partition(": ")
    raise KINDS.get(kind, errors.LocalError)(sentence)


def read(connection: socket.socket, size: int) -> bytearray:
    """Read exactly this many bytes. Raises Disconnected when the other side ends before."""
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        try:
            count = connection.recv_into(view[at:])
        except (ConnectionError, BrokenPipeError):
            count = 0
        if not count:
            raise Disconnected
        at += count
    return content
