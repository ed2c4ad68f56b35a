"""A flood of strangers is noticed, followed through views, and its end as well."""

from collections import Counter
from collections.abc import Sequence

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.runtime.member.stranger_watch import (
    DRAIN_SECONDS,
    FLOOD_DATAGRAMS,
    HOLD_SECONDS,
    StrangerWatch,
)
from ringcast.runtime.net.own_filter import HEAVY_SAMPLE, SAMPLE

A, B = Address(1), Address(2)


def view(number: int, *members: Address) -> View:
    peers = tuple(Peer(member, f"m{member}", "") for member in members)
    return View(ViewId(number, members[0]), peers)


class Watched:
    """A watch, and what it asked the kernel for."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.asked: list[Sequence[Address]] = []
        self.heavy: list[bool] = []
        self.watch = StrangerWatch(self.counters, self.ask)

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
