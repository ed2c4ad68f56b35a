"""Repairs within the pace of the messages."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.congestion import Congestion
from ringcast.core.reliable.paced_repairs import PACE, PacedRepairs
from ringcast.core.reliable.repair_queue import RepairQueue
from ringcast.core.reliable.windows import SendWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part

A, B = Address(1), Address(2)
SIZE, COUNT = 1_000, 1_000
DELAY = 0.001


class Sender:
    """A part that has sent messages to B, and is asked for them again."""

    def __init__(self) -> None:
        self.env = Env(Peer(A, "a", ""), Random(1), mtu=1_472)
        self.part = Part(self.env)
        self.window = SendWindow(COUNT)
        self.window.append(Batch(A, [bytes(SIZE)] * COUNT, SIZE * COUNT))
        self.congestion = Congestion(self.env, 4_000_000)
        self.congestion.join(B, 0)
        self.resent = RangeSet()
        self.repairs = PacedRepairs(
            self.part, self.window, self.congestion, RepairQueue(), self._resend
        )

    def _resend(self, wanted: RangeSet, receiver: Address | None) -> int:
        assert receiver == B
        assert not self.resent.intersection(wanted)
        for first, last in wanted:
            self.resent.add(first, last)
        return wanted.count * SIZE


def test_repairs_are_sent_at_the_pace_and_the_timer_sends_the_rest() -> None:
    sender = Sender()
    sender.repairs.request(B, RangeSet([(1, COUNT)]), DELAY)
    assert 0 < sender.resent.count < COUNT / 2
    assert sender.congestion.is_paced
    fired = 0
    while sender.repairs:
        assert sender.env.timers.is_set(sender.part, PACE)
        sender.env.now = sender.congestion.ready_at
        sender.repairs.send()
        fired += 1
    assert sender.resent.count == COUNT
    assert fired > 2


def test_what_is_freed_or_was_never_sent_is_not_queued() -> None:
    sender = Sender()
    sender.window.purge(10)
    sender.repairs.request(B, RangeSet([(1, 10), (COUNT + 1, 1 << 60)]), DELAY)
    assert not sender.repairs
    assert sender.resent.count == 0
    assert not sender.congestion.is_paced


def test_nothing_goes_to_a_receiver_that_has_left() -> None:
    sender = Sender()
    sender.repairs.request(B, RangeSet([(1, COUNT)]), DELAY)
    sender.repairs.forget(B)
    assert not sender.repairs


class Losses(Congestion):
    """Notes what was lost."""

    def __init__(self, env: Env) -> None:
        super().__init__(env, 4_000_000)
        self.lost: list[int] = []
        self.calm_lost: list[int | None] = []

    def on_lost(
        self, member: Address, count: int, message_bytes: float, calm: int | None = None
    ) -> None:
        self.lost.append(count)
        self.calm_lost.append(calm)


def noting() -> tuple[PacedRepairs, Losses, Env]:
    sender = Sender()
    losses = Losses(sender.env)
    losses.join(B, 0)
    queue, window = RepairQueue(), sender.window
    repairs = PacedRepairs(sender.part, window, losses, queue, lambda wanted, to: wanted.count)
    return repairs, losses, sender.env


def test_a_message_that_is_requested_again_is_not_lost_again() -> None:
    repairs, losses, _ = noting()
    repairs.request(B, RangeSet([(1, 10)]), DELAY)
    repairs.request(B, RangeSet([(6, 20)]), DELAY)
    repairs.request(B, RangeSet([(1, 20)]), DELAY)
    assert losses.lost == [10, 10]


def test_of_a_packed_run_less_was_lost_than_is_requested() -> None:
    repairs, losses, env = noting()
    env.out.is_packing = True
    repairs.request(B, RangeSet([(1, 3), (8, 8), (11, 12)]), DELAY)
    assert losses.lost == [3], "two messages, a part of one, and one"


def test_losses_of_the_last_calm_phase_are_told_apart() -> None:
    repairs, losses, _ = noting()
    losses.calm = (5, 8)
    repairs.request(B, RangeSet([(1, 6), (10, 12)]), DELAY)
    assert losses.calm_lost == [2]
