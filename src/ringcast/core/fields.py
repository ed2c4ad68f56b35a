"""Fields of control frames in bytes: each annotation of a frame's class has one way to be written
and read.

A frame's class says what it carries (`ranges: RangeSet`, `members: tuple[Address, ...]`); this
derives how that looks on the wire, so that no frame has code of its own. Reading stays within the
frame: a count is compared with the bytes that are there before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast, get_args, get_origin, get_type_hints

from ringcast.core.address import Address, Peer
from ringcast.core.ranges import RangeSet
from ringcast.core.view import View, ViewId
from ringcast.errors import Malformed

VIEW_NUMBER_MAX = 2**63
"""Views are numbered one by one, so none comes near it; and each has to have a successor."""

_U32 = struct.Struct("!I")
_U64 = struct.Struct("!Q")


class Cursor:
    """Reads fields one after the other out of a frame's bytes; running past the end is
    Malformed."""

    __slots__ = ("at", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.at = 0

    def take(self, size: int) -> memoryview:
        if size > len(self.view) - self.at:
            raise Malformed("a field is cut off")
        piece = self.view[self.at : self.at + size]
        self.at += size
        return piece

    def number(self) -> int:
        return cast(int, _U64.unpack(self.take(8))[0])

    def count(self, smallest: int) -> int:
        """A number of things that follow, each of at least this size: bounded by what is there."""
        count = cast(int, _U32.unpack(self.take(4))[0])
        if count * smallest > len(self.view) - self.at:
            raise Malformed("a list promises more than there is")
        return count


class Field(NamedTuple):
    write: Callable[[object], bytes]
    read: Callable[[Cursor], object]
    smallest: int
    """The fewest bytes that such a field takes."""


def _write_text(value: object) -> bytes:
    raw = cast(str, value).encode()
    return _U32.pack(len(raw)) + raw


def _read_text(cursor: Cursor) -> str:
    try:
        return str(cursor.take(cursor.count(1)), "utf-8")
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None


def _write_ranges(value: object) -> bytes:
    flat = [bound for pair in cast(RangeSet, value).ranges() for bound in pair]
    return struct.pack(f"!I{len(flat)}Q", len(flat) // 2, *flat)


def _read_ranges(cursor: Cursor) -> RangeSet:
    count = cursor.count(16)
    flat = struct.unpack(f"!{2 * count}Q", cursor.take(16 * count))
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if not pairs:
        raise Malformed("a request for nothing")
    before = 0
    for first, last in pairs:
        if not before < first <= last:
            raise Malformed("ranges out of order")
        before = last
    return RangeSet(pairs)


def _write_view_id(value: object) -> bytes:
    number, coordinator = cast(ViewId, value)
    return _U64.pack(number) + _U64.pack(coordinator)


def _read_view_id(cursor: Cursor) -> ViewId:
    number = cursor.number()
    if number > VIEW_NUMBER_MAX:
        raise Malformed("a view that no other could follow")
    return ViewId(number, Address(cursor.number()))


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
    int: Field(_U64.pack, Cursor.number, 8),
    Address: Field(_U64.pack, lambda cursor: Address(cursor.number()), 8),
    str: Field(_write_text, _read_text, 4),
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
        return tuple([item.read(cursor) for _ in range(cursor.count(item.smallest))])

    return Field(write, read, 4)


def _record_of(record: Callable[..., object]) -> Field:
    fields = [field_of(hint) for hint in get_type_hints(record).values()]

    def write(value: object) -> bytes:
        parts = zip(fields, cast(Sequence[object], value), strict=True)
        return b"".join([field.write(part) for field, part in parts])

    def read(cursor: Cursor) -> object:
        return record(*[field.read(cursor) for field in fields])

    return Field(write, read, sum(field.smallest for field in fields))
