"""A flood of strangers is noticed, followed through views, and its end as well."""

from collections import Counter
from collections.abc import Sequence

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.runtime.member.stranger_watch import (
    DRAIN_SECONDS,
    FLOOD_DATAGRAMS,
    FLOOD_SECONDS,
    FORMING_FLOOD_DATAGRAMS,
    HOLD_SECONDS,
    SEALED_FLOOD_DATAGRAMS,
    StrangerWatch,
)
from ringcast.runtime.net.datagram.own_filter import HEAVY_SAMPLE, SAMPLE, SEALED_SAMPLE

A, B = Address(1), Address(2)


def view(number: int, *members: Address) -> View:
    peers = tuple(Peer(member, f"m{member}", "") for member in members)
    return View(ViewId(number, members[0]), peers)


class Watched:
    """A watch, and what it asked the kernel for."""

    def __init__(self, is_closed: bool = False) -> None:
        self.counters: Counter[str] = Counter()
        self.asked: list[Sequence[Address]] = []
        self.heavy: list[bool] = []
        self.refused = 0
        self.watch = StrangerWatch(self.counters, self, self.ask, is_closed)

    def ask(self, members: Sequence[Address], is_heavy: bool) -> None:
        self.asked.append(members)
        self.heavy.append(is_heavy)

    def hear(self, count: int, now: float, of: View) -> None:
        self.counters["received_strangers"] += count
        self.watch.look(of, now)


def test_some_strangers_are_no_flood() -> None:
    watched, one = Watched(), view(1, A, B)
    for second in range(100):
        watched.hear(FLOOD_DATAGRAMS // 2, float(second), one)
    assert watched.asked == []


def test_a_flood_is_sampled_until_it_is_over() -> None:
    watched, one = Watched(), view(1, A, B)
    for step in range(4):
        watched.hear(FLOOD_DATAGRAMS, 10.0 + 0.1 * step, one)
    assert watched.asked == [one.members]
    for step in range(100):  # The sample of a flood that goes on.
        watched.hear(FLOOD_DATAGRAMS // SAMPLE, 11.0 + 0.4 * step, one)
    assert watched.asked == [one.members]
    watched.hear(0, 60.0 + HOLD_SECONDS, one)
    assert watched.asked == [one.members, ()]


def test_in_a_flood_each_view_is_told_to_the_kernel() -> None:
    watched, one, two = Watched(), view(1, A), view(2, A, B)
    for step in range(3):
        watched.hear(FLOOD_DATAGRAMS, 10.0 + 0.1 * step, one)
    watched.hear(0, 10.4, two)
    assert watched.asked == [one.members, two.members]


def test_a_flood_of_what_groups_form_with_is_sampled_as_well_until_it_is_over() -> None:
    watched, one = Watched(), view(1, A, B)
    for step in range(20):
        watched.hear(FLOOD_DATAGRAMS, 10.0 + 0.1 * step, one)
    assert watched.heavy == [False, True]
    for step in range(100):  # The sample of a flood that goes on.
        watched.hear(FLOOD_DATAGRAMS // HEAVY_SAMPLE, 12.0 + 0.4 * step, one)
    assert watched.heavy == [False, True]
    for step in range(20):  # Another flood goes on.
        watched.hear(FLOOD_DATAGRAMS // SAMPLE, 53.0 + 0.4 * step, one)
    assert watched.heavy == [False, True, False]
    watched.hear(0, 61.0 + HOLD_SECONDS, one)
    assert watched.asked == [one.members] * 3 + [()]


def test_what_arrived_before_the_kernel_sampled_is_no_flood_of_what_groups_form_with() -> None:
    watched, one = Watched(), view(1, A, B)
    for step in range(9):
        watched.hear(FLOOD_DATAGRAMS, 10.0 + 0.1 * step, one)
    watched.hear(FLOOD_DATAGRAMS // SAMPLE, 10.2 + DRAIN_SECONDS, one)
    assert watched.heavy == [False]


def test_a_large_flood_of_what_groups_form_with_is_sampled_at_once() -> None:
    watched, one = Watched(), view(1, A, B)

    def hear(count: int, now: float) -> None:
        watched.counters["received_joiners"] += count
        watched.hear(count, now, one)

    for step in range(4):  # Hundreds of joiners send this many.
        hear(FORMING_FLOOD_DATAGRAMS // 5, 1.0 + 0.1 * step)
    assert True not in watched.heavy
    for step in range(2):
        hear(FORMING_FLOOD_DATAGRAMS, 10.0 + 0.1 * step)
    assert watched.heavy[-1]
    for step in range(20):  # The sample of a flood that goes on.
        hear(FORMING_FLOOD_DATAGRAMS // HEAVY_SAMPLE, 10.3 + 0.4 * step)
    assert watched.heavy[-1]
    hear(0, 40.0 + HOLD_SECONDS)
    assert watched.asked[-1] == ()


def test_datagrams_that_are_not_right_count_as_those_of_strangers() -> None:
    watched, one = Watched(), view(1, A, B)
    for step in range(4):
        watched.refused += FLOOD_DATAGRAMS
        watched.watch.look(one, 10.0 + 0.1 * step)
    assert watched.asked == [one.members]


def test_what_no_key_opens_is_a_flood_of_a_closed_group() -> None:
    watched, one = Watched(is_closed=True), view(1, A, B)

    def hear(count: int, now: float) -> None:
        watched.refused += count
        watched.watch.look(one, now)

    for step in range(9):  # What an open group calls a flood.
        hear(FLOOD_DATAGRAMS, 1.0 + FLOOD_SECONDS * step)
    assert watched.asked == []
    for step in range(20):
        hear(SEALED_FLOOD_DATAGRAMS, 10.0 + 0.1 * step)
    assert watched.heavy == [False], "joiners are sampled once, and never twice"
    for step in range(20):  # The sample of a flood that goes on.
        hear(SEALED_FLOOD_DATAGRAMS // SEALED_SAMPLE, 13.0 + 0.4 * step)
    assert watched.asked == [one.members]
    hear(0, 30.0 + HOLD_SECONDS)
    assert watched.asked == [one.members, ()]
