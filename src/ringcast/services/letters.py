"""Letters: what the desks of two members say to each other, inside messages that are theirs alone.

A letter is its code, its fields, and behind them the body as it is. The fields are laid out by
their annotations, as those of control frames are; a new letter is a new class here with a code of
its own. What comes from the network is parsed within its bounds, or raises Malformed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, get_type_hints

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.fields import Cursor, Field, field_of
from ringcast.core.view import ViewId
from ringcast.errors import Malformed


class Letter:
    """The base of all letters."""

    __slots__ = ()
    code: ClassVar[int]


@dataclass(slots=True)
class Call(Letter):
    """Please answer this; the body is the question."""

    code = 1
    id: int
    """The caller's number of the call."""


@dataclass(slots=True)
class Answer(Letter):
    """The answer to a call; the body is the value, or says in words why there is none."""

    code = 2
    id: int
    outcome: int


@dataclass(slots=True)
class Ask(Letter):
    """Please give me the group's state."""

    code = 3
    id: int
    """The newcomer's number of the attempt."""


@dataclass(slots=True)
class Cancel(Letter):
    """I no longer want the state that I asked for."""

    code = 4
    id: int


@dataclass(slots=True)
class Refuse(Letter):
    """You get no state from me."""

    code = 5
    id: int
    failed: int
    """1 when there is a state, but giving it failed; the body says how."""


class Mark(NamedTuple):
    """A sender, and the last of its messages that a state contains."""

    sender: Address
    seqno: int


@dataclass(slots=True)
class Begin(Letter):
    """Here comes the state, as it was in this view after these messages."""

    code = 6
    id: int
    view: ViewId
    marks: tuple[Mark, ...]


@dataclass(slots=True)
class Piece(Letter):
    """The next bytes of the state are the body."""

    code = 7
    id: int


@dataclass(slots=True)
class End(Letter):
    """That was all of the state."""

    code = 8
    id: int


VIEW_SIZE = 4_096
"""Bodies of at least this size stay where they are, smaller ones are copied, as with messages."""

PIECE_HEAD = 9
"""Bytes of a letter with a piece besides the piece."""


def write(letter: Letter, body: Payload = b"") -> bytes:
    """A letter as a message."""
    head = [field.write(getattr(letter, name)) for name, field in _LAYOUTS[type(letter)]]
    return b"".join([bytes((letter.code,)), *head, body])


def read(payload: Payload) -> tuple[Letter, Payload]:
    """The letter in a message, and its body. Raises Malformed."""
    kind = _KINDS.get(payload[0]) if len(payload) else None
    if kind is None:
        raise Malformed("no letter has this code")
    view = memoryview(payload)
    cursor = Cursor(view)
    cursor.at = 1
    values = [field.read(cursor) for _, field in _LAYOUTS[kind]]
    body = view[cursor.at :]
    return kind(*values), body if len(body) >= VIEW_SIZE else bytes(body)


_KINDS: dict[int, type[Letter]] = {
    kind.code: kind for kind in (Call, Answer, Ask, Cancel, Refuse, Begin, Piece, End)
}


def _layout(kind: type[Letter]) -> list[tuple[str, Field]]:
    hints = get_type_hints(kind)
    names: tuple[str, ...] = tuple(kind.__slots__)
    return [(name, field_of(hints[name])) for name in names]


_LAYOUTS = {kind: _layout(kind) for kind in _KINDS.values()}
