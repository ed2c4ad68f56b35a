"""The open log's records: framed by length and CRC-32, so that a torn tail is known for what it is.

    frame    u32 length of the body · u32 crc32 of the body · body
    header   b"H" · JSON: group, recorder, number, how far senders had come, the members' names
    run      b"R" · view, view_by, sender, first, sent_at, delivered_at (i64) · u32 count ·
             count × u32 lengths · the payloads, one behind the other
    skip     b"S" · view, view_by, sender, first, last (i64)
    view     b"V" · JSON: view, view_by, when it came, its members

All little-endian. A log is one header and then runs, skips and views; reading stops at the first
record that is not whole, since everything behind it was written later and synced never.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import BinaryIO, NamedTuple
from zlib import crc32

from ringcast.errors import LocalError
from ringcast.journal.format.coverage import NOTHING, Reached
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.members import Known, SeenView


@dataclass(frozen=True, kw_only=True)
class Header:
    """Whose log it is, and where its coverage begins."""

    group: str
    recorder: int
    number: int
    opened_at: int
    durable: bool
    reached: Reached = NOTHING
    names: Mapping[int, str] = field(default_factory=dict)
    """What the members of the view in which it was opened are called."""


class RunRecord(NamedTuple):
    """Consecutive messages of one sender, as they were delivered together."""

    view: int
    view_by: int
    sender: int
    first: int
    sent_at: int
    delivered_at: int
    lengths: tuple[int, ...]
    payloads: memoryview
    """All payloads, one behind the other."""


class SkipRecord(NamedTuple):
    """Messages that the recorder will never get."""

    view: int
    view_by: int
    sender: int
    first: int
    last: int


class SeenViewRecord(NamedTuple):
    """A view that the recorder was given, with its members."""

    seen: SeenView
    members: tuple[Known, ...]


LogRecord = RunRecord | SkipRecord | SeenViewRecord


class LogReader(NamedTuple):
    """A log that is being read: its header, then the records as they are taken."""

    header: Header
    records: Iterator[LogRecord]


def header_record(header: Header) -> bytes:
    """The first record of a log."""
    view, view_by, senders = header.reached
    content = {
        "format": FORMAT,
        "group": header.group,
        "recorder": header.recorder,
        "number": header.number,
        "opened_at": header.opened_at,
        "durable": header.durable,
        "reached": [view, view_by, {str(sender): last for sender, last in senders.items()}],
        "names": {str(address): name for address, name in header.names.items()},
    }
    return _framed(bytes((HEADER,)) + json.dumps(content).encode())


def run_record(
    view: int,
    view_by: int,
    sender: int,
    first: int,
    payloads: Sequence[bytes | memoryview],
    *,
    sent_at: int,
    delivered_at: int,
) -> bytes:
    """A run as one record; raises LocalError when a number does not fit its field."""
    count = len(payloads)
    lengths = tuple(map(len, payloads))
    try:
        fields = RUN.pack(RUN_KIND, view, view_by, sender, first, sent_at, delivered_at, count)
    except struct.error as error:
        raise LocalError(f"a number of this run has more than 64 bits: {error}") from error
    body = b"".join((fields, struct.pack(f"<{count}I", *lengths), *payloads))
    if len(body) != RUN.size + 4 * count + sum(lengths):
        raise LocalError("a payload is a memoryview of items larger than bytes: cast it to bytes")
    return _framed(body)


def skip_record(view: int, view_by: int, sender: int, first: int, last: int) -> bytes:
    """A skip as one record."""
    return _framed(SKIP.pack(SKIP_KIND, view, view_by, sender, first, last))


def view_record(seen: SeenView, members: Iterable[Known]) -> bytes:
    """A view as one record."""
    return _framed(bytes((VIEW_KIND,)) + json.dumps([*seen, [*members]]).encode())


def read_log(file: BinaryIO, size: int) -> LogReader | None:
    """What is whole in a log of `size` bytes; None when its recorder did not even get to the end of
    the header. Raises JournalError for one whose header is damaged, or of another version.

    After the records are taken, `file.tell()` is where the last whole one ends.
    """
    bodies = _bodies(file, size)
    header = next(bodies, None)
    if header is None and _is_cut_off(file, size):
        return None
    if header is None or header[0] != HEADER:
        raise JournalError(
            "its beginning is damaged, or it is not a recorder's log: nothing of it was removed; "
            "move it to another directory to go on without it"
        )
    try:
        read = _header(bytes(header[1:]))
    except _WRONG_CONTENT as error:
        raise JournalError("its header is not what a recorder writes") from error
    return LogReader(read, map(_record, bodies))


def _is_cut_off(file: BinaryIO, size: int) -> bool:
    """Whether a log ends within its header, which is written first and in one piece; or whether the
    disk knew its size and none of its bytes when the power failed."""
    file.seek(0)
    start = file.read(FRAME.size + len(BEGINNING))
    length = FRAME.unpack_from(start)[0] if size >= FRAME.size else size
    if length and BEGINNING.startswith(start[FRAME.size :]):
        return size < FRAME.size + length
    while start and not any(start):
        start = file.read(1 << 20)
    return not start


def _bodies(file: BinaryIO, size: int) -> Iterator[memoryview]:
    """The bodies of whole records; leaves the file where the last one ends."""
    end = 0
    while size - end >= FRAME.size:
        length, checksum = FRAME.unpack(file.read(FRAME.size))
        if length > size - end - FRAME.size:
            break
        body = file.read(length)
        if len(body) != length or crc32(body) != checksum or not body:
            break
        end = file.tell()
        yield memoryview(body)
    file.seek(end)


def _record(body: memoryview) -> LogRecord:
    """A record whose checksum is right; a log that no recorder wrote may be wrong."""
    try:
        return _parsed(body)
    except _WRONG_CONTENT as error:
        raise JournalError("a record of it is not what a recorder writes") from error


def _parsed(body: memoryview) -> LogRecord:
    if body[0] == SKIP_KIND:
        return SkipRecord(*SKIP.unpack(body)[1:])
    if body[0] == VIEW_KIND:
        view, view_by, at, members = json.loads(bytes(body[1:]))
        return SeenViewRecord(SeenView(view, view_by, at), tuple(map(tuple, members)))
    if body[0] != RUN_KIND:
        raise ValueError(body[0])
    _, view, view_by, sender, first, sent_at, delivered_at, count = RUN.unpack_from(body)
    lengths = struct.unpack_from(f"<{count}I", body, RUN.size)
    payloads = body[RUN.size + 4 * count :]
    if sum(lengths) != len(payloads):
        raise ValueError(len(payloads))
    return RunRecord(view, view_by, sender, first, sent_at, delivered_at, lengths, payloads)


def _header(content: bytes) -> Header:
    fields = json.loads(content)
    if fields.get("format") not in FORMATS:
        raise JournalError(
            f"it has the format {fields.get('format')!r}, and this version reads {FORMAT}: let the "
            "version of Ringcast that wrote it recover it"
        )
    view, view_by, senders = fields["reached"]
    reached = Reached(view, view_by, dict(starmap(_number_pair, senders.items())))
    return Header(
        group=fields["group"],
        recorder=fields["recorder"],
        number=fields["number"],
        opened_at=fields["opened_at"],
        durable=fields["durable"],
        reached=reached,
        names={int(address): name for address, name in fields.get("names", {}).items()},
    )


def _number_pair(sender: str, last: int) -> tuple[int, int]:
    return int(sender), last


_WRONG_CONTENT = (ValueError, TypeError, KeyError, AttributeError, struct.error, RecursionError)


def _framed(body: bytes) -> bytes:
    return FRAME.pack(len(body), crc32(body)) + body


FORMAT = 2
FORMATS = (1, FORMAT)
"""Those that can be read; the first had no names and no views."""
FRAME = struct.Struct("<II")
HEADER, RUN_KIND, SKIP_KIND, VIEW_KIND = b"HRSV"
BEGINNING = b'H{"format": '
"""What the header begins with, behind its frame."""
RUN = struct.Struct("<B6qI")
SKIP = struct.Struct("<B5q")
