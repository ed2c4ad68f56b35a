"""What reports of several members become in the live view."""

from typing import cast

import pytest

from ringcast import presets, sync
from ringcast.runtime.live.watch import GroupWatch, _figures, _joined_histories, _lag, _Sample
from ringcast.runtime.member.stats import MemberReport, ViewRecord, member_report, packed
from ringcast.services.inquiries import Received
from ringcast.transports import Memory


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


def test_datagrams_of_other_groups_are_no_trouble() -> None:
    spec = presets.loopback().replace(Memory())
    with sync.join("watch", spec, name="ann") as group:
        honest = member_report(group._member, group._member.began + 1.0)
    before = _Sample(0.0, {**honest, "counters": {"dropped_wrong_group": 1, "dropped_remote": 1}})
    after = _Sample(
        2.0,
        {**honest, "counters": {"dropped_wrong_group": 9, "dropped_remote": 9, "dropped_bytes": 9}},
    )
    found = _figures(before, after)
    assert found["drops"] == {"wrong_group": 9, "remote": 9, "bytes": 9}
    assert found["rising_drops"] == {"remote": 4.0}


def test_the_lag_is_what_others_have_sent_and_the_member_has_not_taken() -> None:
    assert _lag(report("eve", ann=70, bob=5, gone=1), {"ann": 100, "bob": 4, "eve": 9}) == 30


def test_a_member_that_answered_the_last_question_is_not_silent_however_old_its_answer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with `ringcast top --interval 5`; a member that does not answer is told a second later."""
    spec, clock = presets.loopback().replace(Memory()), [100.0]
    with sync.join("watch", spec, name="ann") as group:
        own = member_report(group._member, group._member.began + 1.0)
        answers = {group.me: Received(packed(own), 0.0, 0.0)}
        monkeypatch.setattr(group._service, "inquire", lambda: answers)
        watch = GroupWatch(group, lambda: clock[0])

        def silent(answered: float, now: float) -> float:
            answers[group.me] = Received(packed(own), answered, 0.0)
            clock[0] = now
            return watch.look()["members"][0]["silent_seconds"]

        assert silent(answered=100.0, now=100.0) == 0.0
        assert silent(answered=100.1, now=105.0) == 0.0
        assert silent(answered=105.1, now=110.0) == 0.0
        assert silent(answered=105.1, now=110.5) == 0.0
        assert silent(answered=105.1, now=111.5) == 1.5
        assert silent(answered=112.0, now=112.1) == 0.0
