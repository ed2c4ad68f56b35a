"""Service messages: what the RequestCorrelators of two members send to each other.

A service message is its code, its fields, and then the body unchanged. The layout of the fields
follows their annotations, as in control frames; a new service message is a new class here with a
code of its own. Input from the network is parsed within its bounds, or raises Malformed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, get_type_hints

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.model.text import shortened
from ringcast.core.model.view import ViewId
from ringcast.core.wire.fields import Cursor, Field, field_of
from ringcast.errors import Malformed


class ServiceMessage:
    """The base of all service messages."""

    __slots__ = ()
    code: ClassVar[int]


@dataclass(slots=True)
class Call(ServiceMessage):
    """Please answer this; the body is the question."""

    code = 1
    id: int
    """The caller's number of the call."""


@dataclass(slots=True)
class Answer(ServiceMessage):
    """The answer to a call; the body is the value, or says in words why there is none."""

    code = 2
    id: int
    outcome: int


@dataclass(slots=True)
class StateRequest(ServiceMessage):
    """Please give me the group's state."""

    code = 3
    id: int
    """The newcomer's number of the attempt."""


@dataclass(slots=True)
class StateCancel(ServiceMessage):
    """I no longer want the state that I asked for."""

    code = 4
    id: int


@dataclass(slots=True)
class StateRefusal(ServiceMessage):
    """You get no state from me."""

    code = 5
    id: int
    failed: int
    """1 when there is a state, but giving it failed; the body says how. 2 when the member has only
    the state that it began with alone: it gives that one if it is asked again."""


class StateMark(NamedTuple):
    """A sender, and the last of its messages that a state contains."""

    sender: Address
    seqno: int


@dataclass(slots=True)
class StateBegin(ServiceMessage):
    """Here comes the state, as it was in this view after these messages."""

    code = 6
    id: int
    view: ViewId
    marks: tuple[StateMark, ...]


@dataclass(slots=True)
class StatePiece(ServiceMessage):
    """The next bytes of the state are the body."""

    code = 7
    id: int


@dataclass(slots=True)
class StateEnd(ServiceMessage):
    """That was all of the state."""

    code = 8
    id: int


VIEW_SIZE = 4_096
"""Bodies of at least this size stay where they are, smaller ones are copied, as with messages."""

REASON_MAX = 2_000
"""Characters of a reason that is sent, and of one that is read."""

PIECE_HEAD = 9
"""Bytes of a StatePiece message besides the piece."""


def write(message: ServiceMessage, body: Payload = b"") -> bytes:
    """A service message as a payload."""
    head = [field.write(getattr(message, name)) for name, field in _LAYOUTS[type(message)]]
    return b"".join([bytes((message.code,)), *head, body])


def read(payload: Payload) -> tuple[ServiceMessage, Payload]:
    """The service message in a payload, and its body. Raises Malformed."""
    kind = _KINDS.get(payload[0]) if len(payload) else None
    if kind is None:
        raise Malformed("no service message has this code")
    view = memoryview(payload)
    cursor = Cursor(view)
    cursor.at = 1
    values = [field.read(cursor) for _, field in _LAYOUTS[kind]]
    body = view[cursor.at :]
    return kind(*values), body if len(body) >= VIEW_SIZE else bytes(body)


def write_reason(reason: str) -> bytes:
    """Why there is no answer, as a body: the text of any error, also one without UTF-8."""
    return reason[:REASON_MAX].encode(errors="backslashreplace")


def read_reason(body: Payload) -> str:
    """Why there is no answer, from a body that a member has sent: short, and safe to be shown."""
    return shortened(bytes(body[: 4 * REASON_MAX]).decode(errors="replace"), REASON_MAX)


_KINDS: dict[int, type[ServiceMessage]] = {
    kind.code: kind
    for kind in (
        Call,
        Answer,
        StateRequest,
        StateCancel,
        StateRefusal,
        StateBegin,
        StatePiece,
        StateEnd,
    )
}


def _layout(kind: type[ServiceMessage]) -> list[tuple[str, Field]]:
    hints = get_type_hints(kind)
    names: tuple[str, ...] = tuple(kind.__slots__)
    return [(name, field_of(hints[name])) for name in names]


_LAYOUTS = {kind: _layout(kind) for kind in _KINDS.values()}
