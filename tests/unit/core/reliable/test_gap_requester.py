"""One timer for the requests of several windows, each within a datagram."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.reliable.gap_requester import RANGE_BYTES, GapRequester
from ringcast.core.reliable.repair import Repair, RequestTiming
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part
from ringcast.layers.unicast import Unicast
from tests.unit.core.batches import run

DELAY = 0.001
B, C = Address(2), Address(3)


class Receiver:
    """A part with the windows of two senders."""

    def __init__(self, spec: Unicast | None = None, mtu: int = 1_000) -> None:
        self.env = Env(Peer(Address(1), "a", ""), Random(1), mtu=mtu)
        self.repairs = {
            sender: Repair(ReceiveWindow(1_000), RequestTiming(DELAY, 0.1)) for sender in (B, C)
        }
        self.sent: list[tuple[Address, RangeSet]] = []
        self.requester = GapRequester(
            Part(self.env), spec or Unicast(), self.repairs.items, self._send
        )

    def _send(self, source: Address, wanted: RangeSet) -> None:
        self.sent.append((source, wanted))

    def arrive(self, sender: Address, *seqnos: int) -> None:
        for seqno in seqnos:
            self.repairs[sender].window.put(run(seqno))
        self.requester.note_gaps(self.repairs[sender])

    def fire(self) -> float:
        """Let the next timer fire; when that was."""
        self.env.now = self.env.timers.deadline
        assert self.env.timers.pop_due(self.env.now) is not None
        self.requester.on_timer()
        return self.env.now


def test_what_is_due_of_all_senders_is_requested_together() -> None:
    member = Receiver()
    member.arrive(B, 2)
    member.arrive(C, 3)
    assert member.fire() == DELAY
    assert [(source, list(wanted)) for source, wanted in member.sent] == [
        (B, [(1, 1)]),
        (C, [(1, 2)]),
    ]
    assert member.env.counters["requested"] == 3


def test_the_timer_goes_on_while_something_is_missing() -> None:
    member = Receiver()
    member.arrive(B, 2)
    member.fire()
    assert member.env.timers.deadline < float("inf")
    member.arrive(B, 1)
    member.fire()
    assert len(member.sent) == 1
    assert member.env.timers.deadline == float("inf")


def test_a_request_has_no_more_gaps_than_fit_a_datagram_or_the_setting_allows() -> None:
    for mtu, spec, most in ((400, Unicast(), 400 // RANGE_BYTES), (9_000, None, 512)):
        member = Receiver(spec, mtu)
        member.arrive(B, *range(2, 900, 2))
        member.fire()
        assert 0 < member.sent[0][1].count_ranges < most
    member = Receiver(Unicast(request_ranges=3))
    member.arrive(B, *range(2, 900, 2))
    member.fire()
    assert member.sent[0][1].count_ranges == 3


def test_expired_gaps_can_be_requested_at_the_end_of_the_step() -> None:
    member = Receiver()
    member.arrive(B, 2)
    member.repairs[B].expire(0.0)
    member.requester.request_soon()
    assert member.fire() == 0.0
    assert member.sent
