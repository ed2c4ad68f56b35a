"""What reports of several members become in the live view."""

from typing import cast

from ringcast.runtime.live.watch import _joined_histories, _lag
from ringcast.runtime.member.stats import MemberReport, ViewRecord


def record(number: int, *members: str, joined: tuple[str, ...] = (), why: str = "") -> ViewRecord:
    return {
        "at": float(number),
        "number": number,
        "members": list(members),
        "joined": list(joined),
        "left": [],
        "why": why,
    }


def report(name: str, *history: ViewRecord, **windows: int) -> MemberReport:
    marks = {sender: {"delivered": delivered} for sender, delivered in windows.items()}
    told = {"name": name, "history": list(history), "multicast": {"windows": marks}}
    return cast(MemberReport, told)


def test_a_view_is_told_by_a_member_that_was_there_before() -> None:
    joiner = report("eve", record(2, "ann", "eve", joined=("ann", "eve"), why="eve joined"))
    old = report("ann", record(2, "ann", "eve", joined=("eve",), why="eve joined (and why)"))
    for order in ((joiner, old), (old, joiner)):
        assert [view["why"] for view in _joined_histories(order)] == ["eve joined (and why)"]


def test_an_eviction_is_told_by_the_coordinator_that_knows_of_it() -> None:
    member = report("bob", record(3, "ann", "bob", why="dan left"))
    coordinator = report("ann", record(3, "ann", "bob", why="dan was evicted: it was slow"))
    found = _joined_histories([member, coordinator])
    assert [view["why"] for view in found] == ["dan was evicted: it was slow"]


def test_views_of_both_sides_of_a_partition_are_kept_in_order() -> None:
    here = report("ann", record(2, "ann"), record(4, "ann", "dan"))
    there = report("dan", record(3, "dan"), record(4, "ann", "dan"))
    assert [view["number"] for view in _joined_histories([here, there])] == [2, 3, 4]


def test_the_lag_is_what_others_have_sent_and_the_member_has_not_taken() -> None:
    assert _lag(report("eve", ann=70, bob=5, gone=1), {"ann": 100, "bob": 4, "eve": 9}) == 30
