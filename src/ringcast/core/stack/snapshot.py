"""Snapshots: what a part says of itself at one moment, typed inside the stack, plain outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId


@dataclass(frozen=True, kw_only=True)
class PartSnapshot:
    """Marks and counters of a part, for `stats()`.

    Each part that has any makes a subclass: a frozen dataclass beside it, with a sentence under
    each field. A name that ends in an underscore, since Python reserves it, loses it in plain data.
    """

    def plain(self) -> dict[str, object]:
        """The fields by their names, as data that JSON can carry."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name.removesuffix("_"): _plain(value) for name, value in values}


@dataclass(frozen=True, kw_only=True)
class SentMarks(PartSnapshot):
    """A send window."""

    low: int
    """All receivers have delivered up to here."""
    delivered: int
    """This member's own application has taken up to here."""
    high: int
    """The seqno of the last message sent."""
    nbytes: int
    """Bytes that are kept, to be sent again."""


@dataclass(frozen=True, kw_only=True)
class ReceivedMarks(PartSnapshot):
    """A receive window."""

    low: int
    """All members have delivered up to here: nothing of it is kept."""
    delivered: int
    """The application has taken up to here."""
    handed: int
    """In order up to here, and handed to the application."""
    high: int
    """The last seqno that is known to exist."""
    missing: int
    """Messages up to `high` that have not arrived."""
    nbytes: int
    """Bytes that are kept."""


@dataclass(frozen=True, kw_only=True)
class StackSnapshot:
    """One member's protocols at one moment."""

    roles: Mapping[str, PartSnapshot]
    """What the parts say, by their roles; parts that say nothing are left out."""
    me: Address
    """The address of this member."""
    view: ViewId | None
    """The installed view; None outside of the group."""
    members: tuple[str, ...]
    """The names of the members of the view."""
    counters: Mapping[str, int]
    """How often each thing has happened."""
    closed: str | None
    """Why the member is out of the group for good; None while it is not."""

    def plain(self) -> dict[str, object]:
        """As data that JSON can carry: the roles beside the other fields."""
        own = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "roles"}
        return {role: _plain(snapshot) for role, snapshot in self.roles.items()} | own


def _plain(value: object) -> object:
    match value:
        case PartSnapshot():
            return value.plain()
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case Address() | ViewId():
            return str(value)
        case tuple() | list():
            return [_plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
    return str(value)
