"""Failure detection: silence accuses, an answer clears, and who slept itself accuses nobody."""

from __future__ import annotations

import random
from collections.abc import Collection

from ringcast.control.failure_detector import (
    ALL_WATCH_MAX,
    CANDIDATES,
    FailureDetector,
    FailureDetectorPart,
)
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import Event
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation
from ringcast.core.stack.ports import Control, Ports, SilenceListener, ViewChanger
from ringcast.core.wire.frames import Alive, Frame, Probe, Suspect

LARGE = ALL_WATCH_MAX + 2
"""Members of a group in which not all watch all."""
SPEC = FailureDetector(interval=0.5, timeout=2.0, verify=0.6, watchers=2)


class Others:
    """Stands for the stack and the membership: notes who is suspected, and who is a stranger."""

    def __init__(self, part: FailureDetectorPart) -> None:
        self.part = part
        self.suspected: list[tuple[Address, bool]] = []
        self.strangers: list[Address] = []
        self.elsewhere: set[Address] = set()
        self.evicted: list[tuple[Address, str]] = []
        self.drained = True
        self.view: View | None = None

    def suspect(self, member: Address, suspected: bool) -> None:
        """Note it, and tell the part like the stack does."""
        self.suspected.append((member, suspected))
        self.part.on_suspect(member, suspected)

    def is_elsewhere(self, member: Address) -> bool:
        """As the test says."""
        return member in self.elsewhere

    def stranger(self, source: Address) -> None:
        """Note it."""
        self.strangers.append(source)

    def remind(self) -> None:
        """Nothing to do."""

    def evict(self, member: Address, reason: str) -> None:
        """Note it."""
        self.evicted.append((member, reason))

    def is_late(self, member: Address) -> bool:
        """No member is."""
        return False

    def emit(self, event: Event) -> None:
        """Not used, like all that follow."""

    install = finish = reached = leave = found = cookie = emit

    def stay_away(self, seconds: float, is_default: bool = False) -> None:
        """Not used."""


class Multicast:
    """Stands for the multicast: notes who is said to be silent."""

    def __init__(self) -> None:
        self.told: list[list[Address]] = []

    def silence(self, members: Collection[Address]) -> None:
        """Note it."""
        self.told.append(sorted(members))


class Member:
    """One member of a view of `size`, driven by hand."""

    def __init__(self, me: int, size: int) -> None:
        self.env = Env(Peer(Address(me), f"m{me}", ""), random.Random(1))
        self.part = FailureDetectorPart(self.env, SPEC)
        self.others = Others(self.part)
        ports = Ports()
        ports.offer(Control, self.others)
        ports.offer(ViewChanger, self.others)
        self.multicast = Multicast()
        ports.offer(SilenceListener, self.multicast)
        self.part.connect(ports)
        peers = tuple(Peer(Address(n), f"m{n}", "") for n in range(1, size + 1))
        view = View(ViewId(1, Address(1)), peers)
        everybody = tuple(view)
        starts = dict.fromkeys(view, 0)
        self.part.on_view(Installation(view, None, starts, everybody, ()))

    def pass_time(self, until: float, heard: tuple[int, ...] = ()) -> None:
        """Let time go by in steps of 0.1 s, hearing of some members all along."""
        while self.env.now < until - 1e-9:
            self.env.now = round(self.env.now + 0.1, 3)
            for member in heard:
                self.part.on_heard(Address(member))
            self.wake()

    def wake(self) -> None:
        while (due := self.env.timers.pop_due(self.env.now)) is not None:
            due[0].on_timer(due[1])

    def sent(self, kind: type[Frame]) -> list[tuple[object, Frame]]:
        frames, self.env.out.frames = self.env.out.frames, []
        return [(to, frame) for to, frame in frames if isinstance(frame, kind)]


def test_in_a_small_group_signs_of_life_go_to_all() -> None:
    member = Member(5, size=6)
    member.pass_time(0.5, heard=(3, 4))
    assert sorted(to for to, _ in member.sent(Alive) if isinstance(to, int)) == [1, 2, 3, 4, 6]


def test_in_a_large_group_signs_of_life_go_to_the_next_in_the_view() -> None:
    member = Member(LARGE - 1, size=LARGE)
    member.pass_time(0.5, heard=(LARGE - 3, LARGE - 2))
    assert [to for to, _ in member.sent(Alive)] == [LARGE, 1]


def test_silence_is_reported_to_the_most_senior_present_members() -> None:
    member = Member(6, size=6)
    member.pass_time(2.5, heard=(1, 2, 3, 4))
    assert [(to, frame) for to, frame in member.sent(Suspect)][:CANDIDATES] == [
        (candidate, Suspect((Address(5),))) for candidate in (1, 2, 3)
    ]


def test_the_multicast_is_told_of_members_that_were_not_heard_for_two_intervals() -> None:
    member = Member(3, size=4)
    member.pass_time(0.6, heard=(1, 2, 4))
    assert member.multicast.told == []
    member.pass_time(1.8, heard=(2, 4))
    assert member.multicast.told[-1:] == [[1]]
    member.pass_time(2.8, heard=(1, 2, 4))
    assert member.multicast.told[-1:] == [[]]
    count = len(member.multicast.told)
    member.pass_time(5.0, heard=(1, 2, 4))
    assert len(member.multicast.told) == count, "told once that there are none any more"
    assert not member.others.suspected


def test_a_member_that_is_not_watched_counts_as_heard() -> None:
    large, small = Member(LARGE - 1, size=LARGE), Member(3, size=6)
    small.pass_time(1.0, heard=(1,))
    assert large.part.is_heard((Address(1),), 0.5)
    assert small.part.is_heard((Address(1), Address(2)), 0.5)
    assert not small.part.is_heard((Address(2),), 0.5)


def report(coordinator: Member, *pairs: tuple[int, int], until: float) -> None:
    """These report those again and again, while the coordinator hears all."""
    while coordinator.env.now < until:
        coordinator.pass_time(coordinator.env.now + 0.5, heard=(2, 3, 4, 5))
        for source, silent in pairs:
            coordinator.part.on_frame(Suspect((Address(silent),)), Address(source))
            coordinator.part.on_heard(Address(silent))


def test_of_two_that_do_not_reach_each_other_the_less_senior_has_to_go() -> None:
    member = Member(1, size=5)
    report(member, (2, 4), (4, 2), until=2.0)
    assert [victim for victim, _ in member.others.evicted] == [4]
    assert "less senior" in member.others.evicted[0][1]


def test_a_member_that_several_do_not_reach_has_to_go_and_not_these() -> None:
    member = Member(1, size=5)
    report(member, (3, 2), (4, 2), (5, 2), until=2.0)
    assert {victim for victim, _ in member.others.evicted} == {2}
    assert "more such links" in member.others.evicted[0][1]


def test_a_coordinator_that_several_do_not_hear_has_to_go_itself() -> None:
    member = Member(1, size=5)
    report(member, (3, 1), (4, 1), until=2.0)
    assert {victim for victim, _ in member.others.evicted} == {1}


def test_an_accused_that_answers_is_not_suspected() -> None:
    member = Member(1, size=4)
    member.pass_time(0.5, heard=(3, 4))
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    assert [to for to, _ in member.sent(Probe)] == [2]
    member.part.on_heard(Address(2))
    member.pass_time(1.5, heard=(3, 4))
    assert member.others.suspected == []


def test_an_accused_that_stays_silent_is_suspected_and_cleared_when_heard() -> None:
    member = Member(1, size=4)
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    member.pass_time(0.7, heard=(3, 4))
    assert member.others.suspected == [(2, True)]
    member.part.on_heard(Address(2))
    assert member.others.suspected == [(2, True), (2, False)]


def test_a_hint_is_verified_at_once_and_told_to_the_candidates() -> None:
    member = Member(4, size=4)
    member.part.hint(Address(2))
    frames = [(to, type(frame)) for to, frame in member.env.out.frames]
    assert frames == [(2, Probe), (1, Suspect), (3, Suspect)]
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    member.pass_time(0.7, heard=(1, 3))
    assert member.others.suspected == [(2, True)]


def test_a_member_that_says_itself_that_it_has_failed_is_suspected_at_once() -> None:
    member = Member(4, size=4)
    member.part.on_frame(Suspect((Address(2),)), Address(2))
    assert member.others.suspected == [(2, True)]


def test_a_hint_that_no_other_member_confirms_leads_to_no_suspicion() -> None:
    member = Member(4, size=4)
    for _ in range(20):
        member.part.hint(Address(2), is_refusal=True)
        member.pass_time(member.env.now + 0.1, heard=(1, 3))
    assert member.others.suspected == [], "its silence is shorter than `timeout`"


def test_a_hint_suffices_where_there_is_no_other_member_to_ask() -> None:
    member = Member(2, size=2)
    member.part.hint(Address(1), is_refusal=True)
    member.pass_time(0.7)
    assert member.others.suspected == [(1, True)]


def test_a_member_whose_system_refuses_probes_is_suspected_sooner() -> None:
    member = Member(4, size=4)
    member.part.hint(Address(2), is_refusal=True)
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    member.pass_time(0.1, heard=(1, 3))
    assert member.others.suspected == []
    member.part.hint(Address(2), is_refusal=True)
    member.pass_time(0.3, heard=(1, 3))
    assert member.others.suspected == [(2, True)]


def test_an_accusation_is_confirmed_by_a_member_that_has_signs_too() -> None:
    member = Member(4, size=4)
    member.part.hint(Address(2), is_refusal=True)
    member.sent(Frame)
    for _ in range(3):
        member.part.on_frame(Suspect((Address(2),)), Address(3))
    assert member.sent(Suspect) == [(Address(3), Suspect((Address(2),)))]


def test_an_accusation_is_confirmed_by_a_member_that_hears_nothing_either() -> None:
    member = Member(4, size=4)
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    assert member.sent(Suspect) == []
    member.pass_time(0.4, heard=(1, 3))
    assert [to for to, _ in member.sent(Suspect)] == [1, 3]


def test_a_hint_about_a_living_member_changes_nothing() -> None:
    member = Member(4, size=4)
    for _ in range(10):
        member.part.hint(Address(2))
        member.part.on_heard(Address(2))
    assert len(member.sent(Suspect)) == 2, "one report per `verify` is enough"
    member.pass_time(1.5, heard=(1, 2, 3))
    assert member.others.suspected == []


def test_hints_about_strangers_and_oneself_are_ignored() -> None:
    member = Member(4, size=4)
    member.part.hint(Address(4))
    member.part.hint(Address(9))
    assert member.env.out.frames == []


def test_a_suspect_in_another_view_is_not_cleared_when_heard() -> None:
    """Else it is watched in the place of those who are left, and they are watched by nobody."""
    member = Member(1, size=4)
    member.part.on_frame(Suspect((Address(2),)), Address(3))
    member.pass_time(0.7, heard=(3, 4))
    member.others.elsewhere.add(Address(2))
    member.part.on_heard(Address(2))
    assert member.others.suspected == [(2, True)]


def test_a_member_that_was_paused_accuses_no_other() -> None:
    member = Member(6, size=6)
    member.pass_time(0.5, heard=(4, 5))
    member.sent(Frame)
    member.env.now = 60.0
    member.wake()
    assert member.sent(Suspect) == []
    member.pass_time(61.0, heard=(4, 5))
    assert member.sent(Suspect) == []


def test_the_ring_closes_over_the_absent() -> None:
    member = Member(LARGE - 2, size=LARGE)
    member.others.suspect(Address(LARGE - 1), True)
    member.pass_time(0.5, heard=(LARGE - 4, LARGE - 3))
    assert [to for to, _ in member.sent(Alive)] == [LARGE, 1]


def test_a_member_does_not_accuse_itself_when_another_reports_it() -> None:
    member = Member(1, size=3)
    member.part.on_frame(Suspect((Address(1), Address(77))), Address(2))
    assert member.sent(Probe) == []


def test_a_stranger_is_told() -> None:
    member = Member(1, size=3)
    member.part.on_frame(Alive(), Address(99))
    assert member.others.strangers == [99]


def test_a_suspicion_is_reported_until_a_view_comes() -> None:
    member = Member(2, size=3)
    member.pass_time(3.5, heard=(1,))
    assert (3, True) in member.others.suspected
    member.sent(Frame)
    member.pass_time(4.5, heard=(1,))
    assert (Address(1), Suspect((Address(3),))) in member.sent(Suspect)
