"""The layout of a datagram in bytes, stated once: every struct is composed of the same pieces.

A datagram is a header, a control section and a payload section:

    magic 2 | version 1 | flags 1 | group 8 | source 8 | target 8 | control length 4 | crc32 4
    control:  per frame  code 1 | length 4 | fields …
    payloads: the messages of the runs, one after the other, in the order of the frames

All heads stand before all payloads, so that a run is sent by scatter/gather and cut by slices, and
so that one checksum over the head covers everything that steers the protocol.
"""

from __future__ import annotations

import struct

from ringcast.core.model.address import Address

MAGIC = b"RC"
VERSION = 1
FLAG_FULL_CHECKSUM = 1
FLAG_SEALED = 2
"""The datagram is one of a closed group; see `seal`."""
FLAG_PACKED = 8
"""The datagram holds a part of a run as a stream of bytes; see `packed`."""
VARIED = 0xFFFFFFFF
"""In the place of the common size of a run's messages: each message has a size of its own, and the
sizes follow the head of the run."""
INT_MAX = 2**63 - 1
"""The largest number in a frame: journals, traces and Spark keep numbers as signed 64 bits."""
SEQNO_MAX = 2**62
"""The largest seqno: a sum of two is still a number."""
VIEW_NUMBER_MAX = 2**62
"""Views are numbered one by one, so none comes near it; and each has to have a successor."""
FLAGS_MAX = 0xFF
"""The flags of a run; which of them mean something, the protocols of a stack say."""
FRAMES_MAX = 64
"""Frames in one datagram."""
EMPTY_MAX = 65_536
"""Messages without content in one datagram: only their number is on the wire."""
RANGES_MAX = 1_024
"""Ranges in one request."""
EVERYBODY = Address(0)
"""The target of datagrams that are for every receiver."""

_PREFIX = "2sBBQQ"  # magic, version, flags, group, source
_HEADER = _PREFIX + "QI"  # target, control length
_CHECKSUM = "I"
_FRAME = "BI"  # code, length
_GROUP_STREAM = "QQQQ"  # view number, view coordinator, start, origin
_PAIR_STREAM = "Q"  # conn
_BATCH = "QII"  # sent_at, flags, size
_PLACE = "QQI"  # first, low, count
_ACK = "QQ"  # delivered, ahead
_PACKED_RUN = "QIIBQQQQQ"
# view number, count, size, flags, view coordinator, start, sent_at, first, low
_POSITION = "Q"
_FRAGMENT = "QIIQ"  # message, index, count, total


def _layout(*pieces: str) -> struct.Struct:
    return struct.Struct("!" + "".join(pieces))


PREFIX = _layout(_PREFIX)
"""What every datagram begins with; filters in the kernel read it."""
HEADER = _layout(_HEADER)
CHECKSUM = _layout(_CHECKSUM)
HEAD = _layout(_HEADER, _CHECKSUM)
FRAME = _layout(_FRAME)
FRAGMENT_HEADER = _layout(_FRAGMENT)

DATA = _layout(_GROUP_STREAM, _BATCH, _PLACE)
FRAMED_DATA = _layout(_FRAME, _GROUP_STREAM, _BATCH, _PLACE)
DATAGRAM_OF_DATA = _layout(_HEADER, _CHECKSUM, _FRAME, _GROUP_STREAM, _BATCH, _PLACE)

ACK_BEGIN = _layout("2sBBQ")
ACK_TARGET = _layout("QI")
ACK_PARTS = _layout("12sQ12s", _CHECKSUM, "5s", _ACK)
"""A datagram that holds one ack: its source, checksum and numbers, and between them, as bytes, what
all acks to one member have in common."""

PAIR = _layout(_PAIR_STREAM, _BATCH, _PLACE)
FRAMED_PAIR = _layout(_FRAME, _PAIR_STREAM, _BATCH, _PLACE)
DATAGRAM_OF_PAIR = _layout(_HEADER, _CHECKSUM, _FRAME, _PAIR_STREAM, _BATCH, _PLACE)

COMMON = _layout(_FRAME, _GROUP_STREAM, _BATCH)
"""The part of a DATA frame that the datagrams of one batch have in common: it is packed and summed
up once."""
PLACE = _layout(_PLACE)
"""The end of a DATA frame, in which the datagrams of one batch differ."""
PACKED_RUN = _layout(_PACKED_RUN)
"""A packed run, behind the prefix and the checksum: what a DATA frame says of one, in fewer bytes.
Where other datagrams have the code of their first frame, it has a 0, the first byte of a size."""
POSITION = _layout(_POSITION)
"""Behind that: where the bytes of the datagram belong; see `packed`."""
FRAGMENT_HEADS = _layout(_FRAME, _GROUP_STREAM, _BATCH, _PLACE, _FRAGMENT)
"""A DATA frame with one fragment, and the fragment's header behind it."""
FRAGMENT_PLACE = _layout(_PLACE, _FRAGMENT)

HEADER_SIZE = HEAD.size
FRAME_SIZE = FRAME.size
DATA_SIZE = FRAMED_DATA.size
"""Bytes of a run besides its payloads, when these have one size; else 4 more for each message."""
PAIR_SIZE = FRAMED_PAIR.size
FRAGMENT_HEADER_SIZE = FRAGMENT_HEADER.size

DATA_PAYLOADS_AT = HEADER_SIZE + DATA_SIZE
"""Where the payloads begin in a datagram that holds one run to the group and nothing else."""
PAIR_PAYLOADS_AT = HEADER_SIZE + PAIR_SIZE
PACKED_HEAD_SIZE = PREFIX.size + CHECKSUM.size + PACKED_RUN.size
PACKED_AT = PACKED_HEAD_SIZE + POSITION.size
"""Where the bytes of messages begin in a datagram of a packed run."""
PLACE_AT = DATA_PAYLOADS_AT - PLACE.size
FRAGMENT_AT = DATA_PAYLOADS_AT + FRAGMENT_HEADER_SIZE
"""Where the fragment's bytes begin in a datagram that holds one fragment."""

assert HEADER.size + CHECKSUM.size == HEADER_SIZE
assert ACK_BEGIN.size + ACK_TARGET.size + struct.calcsize("!Q") == HEADER.size
assert ACK_PARTS.size == HEADER_SIZE + FRAME_SIZE + struct.calcsize("!QQ")
assert HEADER_SIZE + COMMON.size == PLACE_AT
assert PREFIX.size + CHECKSUM.size + struct.calcsize("!QI") == HEADER_SIZE  # The 0 of PACKED_RUN.


def is_run_in_bounds(first: int, low: int, count: int, sent_at: int, flags: int) -> bool:
    """Whether a run may say this of itself."""
    return (
        0 < first <= SEQNO_MAX - count
        and low <= SEQNO_MAX
        and sent_at <= INT_MAX
        and flags <= FLAGS_MAX
    )


def is_stream_in_bounds(view_number: int, start: int) -> bool:
    """Whether a run to the group may say this of its view."""
    return view_number <= VIEW_NUMBER_MAX and start <= SEQNO_MAX
