"""The tail loss probe and the ticker: when they fire, and when they do not."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.reliable.tail_probe import PROBE, PROBE_INTERVALS, Tail, TailProbe
from ringcast.core.reliable.ticker import TICK, Ticker
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part

INTERVAL = 0.1
PAUSE = PROBE_INTERVALS * INTERVAL
B, C = Address(2), Address(3)


class Sender:
    """A part with a tail per destination."""

    def __init__(self) -> None:
        self.env = Env(Peer(Address(1), "a", ""), Random(1))
        self.part = Part(self.env)
        self.ticker = Ticker(self.part, INTERVAL)
        self.tails: dict[Address | None, Tail] = {B: Tail(), C: Tail()}
        self.announced: list[Address | None] = []
        self.probe = TailProbe(
            self.part,
            INTERVAL,
            self.ticker,
            lambda: [(tail, dest) for dest, tail in self.tails.items()],
            self.announced.append,
        )

    def fire(self, until: float) -> list[tuple[float, str]]:
        """Let time pass; the timers that were due."""
        fired = []
        while (at := self.env.timers.deadline) <= until:
            self.env.now = at
            due = self.env.timers.pop_due(at)
            assert due is not None
            fired.append((at, due[1]))
            if due[1] == PROBE:
                self.probe.on_timer()
        self.env.now = until
        return fired


def test_a_tail_is_announced_once_after_a_pause() -> None:
    sender = Sender()
    sender.probe.on_sent(sender.tails[B])
    assert sender.fire(PAUSE / 2) == []
    assert sender.fire(2 * INTERVAL) == [(PAUSE, PROBE), (INTERVAL, TICK)]
    assert sender.announced == [B]


def test_a_tail_that_is_followed_is_announced_after_the_last_message() -> None:
    sender = Sender()
    sender.probe.on_sent(sender.tails[B])
    sender.fire(0.6 * PAUSE)
    sender.probe.on_sent(sender.tails[B])
    sender.fire(1.5 * PAUSE)
    assert sender.announced == []
    sender.fire(1.7 * PAUSE)
    assert sender.announced == [B]


def test_each_destination_has_a_tail_of_its_own() -> None:
    sender = Sender()
    sender.probe.on_sent(sender.tails[B])
    sender.fire(PAUSE / 2)
    sender.probe.on_sent(sender.tails[C])
    sender.fire(PAUSE)
    assert sender.announced == [B]
    sender.fire(2 * PAUSE)
    assert sender.announced == [B, C]


def test_sending_marks_the_tail_as_fresh() -> None:
    sender = Sender()
    assert not sender.tails[B].is_fresh
    sender.probe.on_sent(sender.tails[B])
    assert sender.tails[B].is_fresh


def test_arming_a_running_ticker_does_not_move_it() -> None:
    sender = Sender()
    sender.ticker.arm()
    sender.env.now = INTERVAL / 2
    sender.ticker.arm()
    assert sender.fire(3 * INTERVAL) == [(INTERVAL, TICK)]
