"""The part: installing views, telling strangers, and what it says of itself."""

import pytest

from ringcast.control.membership.part import REPEATED_MAX, MembershipSnapshot
from ringcast.core.model.address import Address
from ringcast.core.model.events import Merged
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Evict, Install, Join, Merge, Refused, Section
from ringcast.errors import Malformed
from tests.unit.control.membership.bench import (
    ME,
    OLD,
    OWN,
    SPEC,
    coordinating,
    following,
    joining,
    peer,
    searching,
    view_of,
)


def test_an_installation_names_the_members_that_joined_and_left() -> None:
    bench = following()
    bench.reaches_at_once = True
    view = view_of(5, 3, ME, 9)
    frame = Install(view, (1, 2, 0), (Section(OLD.id, (Address(3), Address(ME)), ()),))
    bench.receive(frame, 3)
    installation = bench.installed[-1]
    assert (installation.joined, installation.left) == ((9,), (7,))
    assert installation.old == OLD
    assert not installation.is_merge
    assert bench.events == [], "a view that follows one view is not a merge"


def test_a_merged_view_names_the_subgroups() -> None:
    bench = following()
    bench.reaches_at_once = True
    groups = (Section(OLD.id, OLD.members, ()), Section(ViewId(4, Address(9)), (Address(9),), ()))
    bench.receive(Install(view_of(8, 3, ME, 7, 9), (0,) * 4, groups), 3)
    assert bench.events == [Merged(view_of(8, 3, ME, 7, 9), (OLD.members, (Address(9),)))]
    assert bench.installed[-1].is_merge


def test_the_source_and_the_coordinator_are_told_that_a_view_is_installed() -> None:
    bench = joining()
    bench.receive(Install(OLD, (0,) * 3, ()), 7)
    assert bench.kinds() == ["INSTALLED to 7", "INSTALLED to 3"]


def test_a_view_with_too_few_starts_is_malformed() -> None:
    with pytest.raises(Malformed, match="starts"):
        searching().receive(Install(OLD, (0,), ()), 3)


@pytest.mark.parametrize("members", [(ME, 3, 9), (ME, 3, 7)])
def test_a_section_with_members_of_one_view_only_is_malformed(members: tuple[int, ...]) -> None:
    bench = following()
    view = view_of(5, 3, ME, 9)
    section = Section(OLD.id, tuple(map(Address, members)), ())
    with pytest.raises(Malformed, match="both views"):
        bench.receive(Install(view, (0,) * 3, (section,)), 3)
    assert bench.part.participant.pending is None


def test_a_former_member_is_told_the_view_once_per_pause() -> None:
    bench = coordinating()
    bench.env.now = 5.0
    bench.part.stranger(Address(9))
    assert bench.kinds() == [], "a process that was never a member gets nothing"
    assert bench.part.view is not None
    bench.part.admission.start_view(bench.part.view, view_of(3, ME, 9))
    bench.part.stranger(Address(9))
    bench.part.stranger(Address(9))
    assert bench.kinds() == ["VIEW to 9"]
    bench.env.now += SPEC.retry_max
    bench.part.stranger(Address(9))
    assert bench.kinds() == ["VIEW to 9"]


def test_the_view_is_repeated_once_however_often_a_member_asks() -> None:
    bench = coordinating()
    view = bench.part.view
    assert view is not None
    member = next(address for address in view if address != ME)
    for _ in range(64):
        bench.receive(Join(peer(member), "", 0), member)
    assert bench.kinds() == [f"VIEW to {int(member)}"]
    bench.env.now += SPEC.retry
    bench.receive(Join(peer(member), "", 0), member)
    assert bench.kinds() == [f"VIEW to {int(member)}"]


def test_an_evicted_member_is_told_why_with_the_view() -> None:
    bench = coordinating()
    bench.part.departures.reasons[Address(9)] = "it is slow"
    bench.part.send_view(Address(9))
    assert bench.sent()[0] == (9, Evict(Address(9), "it is slow"))


def test_a_member_alone_after_an_eviction_rests() -> None:
    bench = following()
    bench.part.stay_away(10.0)
    bench.part.departures.told_why("it is slow")
    bench.part.secede("it is slow")
    assert "rest" in bench.searches


@pytest.mark.parametrize(
    ("view", "role"), [(None, "joiner"), (OLD, "participant"), (OWN, "coordinator")]
)
def test_a_snapshot_names_the_role(view: object, role: str) -> None:
    bench = searching() if view is None else following(view)  # type: ignore[arg-type]
    assert bench.part.snapshot() == MembershipSnapshot(role=role, suspects=(), evicted={})


def test_a_member_alone_that_was_not_told_to_stay_away_does_not_rest() -> None:
    bench = following()
    bench.part.departures.told_why("it is slow")
    bench.part.secede("it is slow")
    assert "rest" not in bench.searches


def test_a_default_for_staying_away_does_not_replace_what_was_set() -> None:
    bench = following()
    bench.part.stay_away(10.0)
    bench.part.stay_away(3.0, is_default=True)
    assert bench.part._away == 10.0
    bench.part.stay_away(5.0)
    assert bench.part._away == 5.0


def test_a_joiner_with_another_stack_is_refused_with_the_difference() -> None:
    bench = coordinating()
    bench.env.fingerprint = "flow=Flow"
    bench.join(9, "flow=Pacing")
    reason = "its stack differs: the group has Flow, and this member has Pacing"
    assert bench.sent() == [(9, Evict(Address(9), reason))]
    assert bench.env.counters["refused_stack"] == 1
    assert not bench.env.timers.is_set(bench.part, "gather")


def test_a_merge_with_another_stack_is_refused() -> None:
    bench = coordinating()
    bench.env.fingerprint = "flow=Flow"
    proposal = ViewId(9, Address(1))
    bench.receive(Merge(proposal, OWN.id, "flow=Pacing"), 1)
    assert bench.sent() == [(1, Refused(proposal, OWN.id, OWN.id))]


def test_a_group_found_with_a_number_that_no_group_reaches_is_counted() -> None:
    bench = coordinating()
    bench.find(9, ViewId(2**61, Address(9)))
    assert bench.env.counters["dropped_view_number"] == 1


def test_a_coordinator_that_is_reminded_looks_at_its_suspects_again() -> None:
    bench = coordinating()
    bench.part.departures.suspect(Address(7), True)
    bench.part.remind()
    assert bench.env.timers.is_set(bench.part, "gather")


def test_a_member_of_another_view_is_elsewhere() -> None:
    bench = coordinating()
    bench.part.note_elsewhere([Address(7)])
    assert bench.part.is_elsewhere(Address(7))
    assert not bench.part.is_elsewhere(Address(3))


def test_the_processes_that_the_view_was_repeated_to_are_bounded() -> None:
    bench = coordinating()
    strangers = range(100, 101 + REPEATED_MAX)
    for number in strangers:
        bench.part.admission.start_view(OWN, view_of(3, ME, number))
        bench.part.stranger(Address(number))
    assert len(bench.part._repeated) == 1
    assert len(bench.kinds()) == len(strangers)


def test_a_member_that_asks_to_join_gets_its_view() -> None:
    bench = following()
    bench.receive(Join(peer(7), "", 0), 7)
    assert bench.kinds() == ["VIEW to 7"]
