"""Snapshots: typed inside the stack, plain data outside."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.stack.snapshot import PartSnapshot, SentMarks, StackSnapshot

A, B = Address(0xA), Address(0xB)


@dataclass(frozen=True, kw_only=True)
class Example(PartSnapshot):
    """One of each kind of value."""

    count: int
    rate: float
    is_on: bool
    reason: str | None
    first: Address
    view: ViewId
    peers: tuple[Address, ...]
    from_: Mapping[Address, SentMarks]


EXAMPLE = Example(
    count=7,
    rate=0.5,
    is_on=True,
    reason=None,
    first=A,
    view=ViewId(3, A),
    peers=(A, B),
    from_={B: SentMarks(low=1, delivered=2, high=3, nbytes=40)},
)
PLAIN = {
    "count": 7,
    "rate": 0.5,
    "is_on": True,
    "reason": None,
    "first": "a",
    "view": "3@a",
    "peers": ["a", "b"],
    "from": {"b": {"low": 1, "delivered": 2, "high": 3, "nbytes": 40}},
}


def test_a_snapshot_becomes_data_that_json_carries_unchanged() -> None:
    assert EXAMPLE.plain() == PLAIN
    assert json.loads(json.dumps(EXAMPLE.plain())) == PLAIN


def test_a_stack_shows_its_roles_beside_its_own_fields() -> None:
    snapshot = StackSnapshot(
        roles={"example": EXAMPLE}, me=A, view=None, members=(), counters={"sent": 1}, closed=None
    )
    assert snapshot.plain() == {
        "example": PLAIN,
        "me": "a",
        "view": None,
        "members": [],
        "counters": {"sent": 1},
        "closed": None,
    }
