"""Fields of control frames in bytes: each annotation of a frame's class has one way to be written
and read.

A frame's class says what it carries (`ranges: RangeSet`, `members: tuple[Address, ...]`); this
derives how that looks on the wire, so that no frame has code of its own. Reading stays within the
frame: a count is compared with the bytes that follow before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast, get_args, get_origin, get_type_hints

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.layout import EVERYBODY, INT_MAX, RANGES_MAX, SEQNO_MAX, VIEW_NUMBER_MAX
from ringcast.errors import Malformed

TEXT_MAX = 512
"""Bytes of a text: a name, an endpoint, a reason."""
ITEMS_MAX = 4_608
"""Items in all lists of one datagram or frame, where those that are not plain numbers count twice
or more: the view of 1,100 members has 4,400."""

_U32 = struct.Struct("!I")
_U64 = struct.Struct("!Q")


class Cursor:
    """Reads fields one after the other out of a frame's bytes; running past the end is
    Malformed."""

    __slots__ = ("at", "items", "view")

    def __init__(self, view: memoryview, items: int = 0) -> None:
        self.view = view
        self.at = 0
        self.items = items
        """Items of lists that were read, of this frame and those before it."""

    def take(self, size: int) -> memoryview:
        if size > len(self.view) - self.at:
            raise Malformed("a field is cut off")
        piece = self.view[self.at : self.at + size]
        self.at += size
        return piece

    def number(self) -> int:
        """A number that is below 2**63 (INT_MAX)."""
        number = self.word()
        if number > INT_MAX:
            raise Malformed("a number out of range")
        return number

    def word(self) -> int:
        """Any 64 bits."""
        at = self.at
        self.at = end = at + 8
        if end > len(self.view):
            raise Malformed("a field is cut off")
        return cast(int, _U64.unpack_from(self.view, at)[0])

    def count(self, smallest: int) -> int:
        """A number of items that follow, each of at least this size: bounded by the bytes left."""
        count = cast(int, _U32.unpack(self.take(4))[0])
        if count * smallest > len(self.view) - self.at:
            raise Malformed("a list promises more than there is")
        return count

    def count_items(self, smallest: int, weight: int) -> int:
        """The number of items of a list, bounded for all lists together."""
        count = self.count(smallest)
        self.items += count * weight
        if self.items > ITEMS_MAX:
            raise Malformed("lists with too many items")
        return count


class Words(NamedTuple):
    """How an item is made that consists of 64-bit words only."""

    makers: tuple[Callable[[int], object], ...]
    record: Callable[..., object] | None = None


class Field(NamedTuple):
    write: Callable[[object], bytes]
    read: Callable[[Cursor], object]
    smallest: int
    """The fewest bytes that such a field takes."""
    words: Words | None = None
    """For a field that consists of 64-bit words only, so that lists of it are read in one step."""
    weight: int = 0
    """What reading it costs besides plain numbers and texts."""


def _write_text(value: object) -> bytes:
    """A text as others may see it: without control characters, and not too long."""
    text = cast(str, value)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "?" for char in text)
    raw = text.encode()
    if len(raw) > TEXT_MAX:
        raw = raw[:TEXT_MAX].decode(errors="ignore").encode()
    return _U32.pack(len(raw)) + raw


def _read_text(cursor: Cursor) -> str:
    size = cursor.count(1)
    if not size:
        return ""
    if size > TEXT_MAX:
        raise Malformed("a text that is too long")
    try:
        text = str(cursor.take(size), "utf-8")
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None
    if not text.isprintable():
        raise Malformed("text with control characters")
    return text


def _write_bytes(value: object) -> bytes:
    raw = cast(bytes, value)
    return _U32.pack(len(raw)) + raw


def _read_bytes(cursor: Cursor) -> bytes:
    return bytes(cursor.take(cursor.count(1)))


def _write_ranges(value: object) -> bytes:
    flat = [bound for pair in cast(RangeSet, value).ranges() for bound in pair]
    return struct.pack(f"!I{len(flat)}Q", len(flat) // 2, *flat)


def _read_ranges(cursor: Cursor) -> RangeSet:
    count = cursor.count(16)
    if count > RANGES_MAX:
        raise Malformed("a request for too many ranges")
    flat = struct.unpack(f"!{2 * count}Q", cursor.take(16 * count))
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if not pairs:
        raise Malformed("a request for nothing")
    before = 0
    for first, last in pairs:
        if not before < first <= last:
            raise Malformed("ranges out of order")
        before = last
    if before > SEQNO_MAX:
        raise Malformed("seqnos out of range")
    return RangeSet(pairs)


def _write_view_id(value: object) -> bytes:
    number, coordinator = cast(ViewId, value)
    return _U64.pack(number) + _U64.pack(coordinator)


def _read_view_id(cursor: Cursor) -> ViewId:
    number = cursor.word()
    if number > VIEW_NUMBER_MAX:
        raise Malformed("a view that no other could follow")
    return ViewId(number, Address(cursor.word()))


def _write_view(value: object) -> bytes:
    view = cast(View, value)
    return field_of(ViewId).write(view.id) + field_of(tuple[Peer, ...]).write(view.peers)


def _read_view(cursor: Cursor) -> View:
    id = cast(ViewId, field_of(ViewId).read(cursor))
    peers = cast(tuple[Peer, ...], field_of(tuple[Peer, ...]).read(cursor))
    if not peers or len({peer.address for peer in peers}) != len(peers):
        raise Malformed("a view with no members, or one of them twice")
    return View(id, peers)


_SCALARS: dict[object, Field] = {
    int: Field(_U64.pack, Cursor.number, 8, Words((int,))),
    Address: Field(_U64.pack, lambda cursor: Address(cursor.word()), 8, Words((Address,))),
    str: Field(_write_text, _read_text, 4),
    bytes: Field(_write_bytes, _read_bytes, 4),
    RangeSet: Field(_write_ranges, _read_ranges, 4),
    ViewId: Field(_write_view_id, _read_view_id, 16),
    View: Field(_write_view, _read_view, 20),
}


def field_of(annotation: object) -> Field:
    """How a field with this annotation is written and read."""
    scalar = _SCALARS.get(annotation)
    if scalar is not None:
        return scalar
    if get_origin(annotation) is tuple:
        field = _list_of(field_of(get_args(annotation)[0]))
    else:
        field = _record_of(cast(Callable[..., object], annotation))
    _SCALARS[annotation] = field
    return field


def _list_of(item: Field) -> Field:
    def write(value: object) -> bytes:
        items = cast(Sequence[object], value)
        return _U32.pack(len(items)) + b"".join(map(item.write, items))

    def read(cursor: Cursor) -> object:
        count = cursor.count_items(item.smallest, 1 if item.words else max(2, item.weight))
        if item.words is None:
            return tuple([item.read(cursor) for _ in range(count)])
        return _read_words(cursor, item.words, count)

    return Field(write, read, 4, weight=5)


def _read_words(cursor: Cursor, words: Words, count: int) -> tuple[object, ...]:
    """Items that consist of 64 bits each, or of several, read in one step."""
    width = len(words.makers)
    flat = struct.unpack(f"!{count * width}Q", cursor.take(8 * count * width))
    columns: list[Iterable[object]] = []
    for at, maker in enumerate(words.makers):
        column = flat[at::width]
        if maker is int and column and max(column) > INT_MAX:
            raise Malformed("a number out of range")
        columns.append(column if maker is int else map(maker, column))
    if words.record is None:
        return tuple(columns[0])
    return tuple(map(words.record, *columns))


def _record_of(record: Callable[..., object]) -> Field:
    hints = list(get_type_hints(record).values())
    fields = [field_of(hint) for hint in hints]

    def write(value: object) -> bytes:
        parts = zip(fields, cast(Sequence[object], value), strict=True)
        return b"".join([field.write(part) for field, part in parts])

    def read(cursor: Cursor) -> object:
        return record(*[field.read(cursor) for field in fields])

    makers = [field.words.makers[0] for field in fields if field.words is not None]
    is_plain = len(makers) == len(fields) and all(hint in (int, Address) for hint in hints)
    words = Words(tuple(makers), record) if is_plain else None
    smallest, weight = sum(f.smallest for f in fields), sum(f.weight for f in fields)
    return Field(write, read, smallest, words, weight)


def _of_peers() -> Field:
    field = _record_of(Peer)

    def read(cursor: Cursor) -> Peer:
        peer = cast(Peer, field.read(cursor))
        if peer.address == EVERYBODY:
            raise Malformed("a process with the address that stands for all")
        return peer

    return field._replace(read=read)


_SCALARS[Peer] = _of_peers()
