"""Who was in the group while it was recorded: what the views said, folded to one entry per member.

A view names all its members. Its record is in the log; the manifest of the segment keeps, for each
member, the first and the last view that had it. Tables of several segments and recorders merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Known = tuple[int, str, str]
"""A member as a view has it: address, name, endpoint."""


class SeenView(NamedTuple):
    """A view, and when the recorder was given it, in microseconds since 1970."""

    view: int
    view_by: int
    at: int


class SeenMember(NamedTuple):
    """A member, with the first and the last view of the recorder that had it."""

    address: int
    name: str
    endpoint: str
    first: SeenView
    last: SeenView


SeenMembers = Mapping[int, SeenMember]
"""By address."""


def saw(known: dict[int, SeenMember], view: SeenView, members: Iterable[Known]) -> None:
    """Add a view's members to those that are known."""
    for address, name, endpoint in members:
        former = known.pop(address, None)
        first = view if former is None else former.first
        known[address] = SeenMember(address, name, endpoint, first, view)


def merged(tables: Iterable[SeenMembers]) -> dict[int, SeenMember]:
    """Several tables as one; a member's name and endpoint are those of its last view."""
    found: dict[int, SeenMember] = {}
    for table in tables:
        for address, member in table.items():
            former = found.get(address, member)
            newest = max(former, member, key=lambda seen: seen.last)
            first = min(former.first, member.first)
            found[address] = newest._replace(first=first)
    return found


def bounded(known: Mapping[int, SeenMember]) -> dict[int, SeenMember]:
    """A table that stays small: the members that were gone first are forgotten."""
    if len(known) <= MEMBERS_MAX:
        return dict(known)
    newest = sorted(known.values(), key=lambda member: member.last.at)[-MEMBERS_MAX:]
    return {member.address: member for member in newest}


def to_json(known: SeenMembers) -> list[list[object]]:
    """The form of manifests: one list per member."""
    return [
        [member.address, member.name, member.endpoint, [*member.first], [*member.last]]
        for member in known.values()
    ]


def from_json(content: object) -> dict[int, SeenMember]:
    """Raises ValueError or TypeError when it is not such a list."""
    if not isinstance(content, list):
        raise TypeError
    found: dict[int, SeenMember] = {}
    for address, name, endpoint, first, last in content:
        if not isinstance(address, int) or not isinstance(name, str):
            raise TypeError
        if not isinstance(endpoint, str):
            raise TypeError
        found[address] = SeenMember(address, name, endpoint, _view(first), _view(last))
    return found


def _view(content: object) -> SeenView:
    if not isinstance(content, list) or not all(isinstance(part, int) for part in content):
        raise TypeError
    view, view_by, at = content
    return SeenView(view, view_by, at)


MEMBERS_MAX = 10_000
