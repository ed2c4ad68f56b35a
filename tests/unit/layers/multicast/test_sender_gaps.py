"""The gaps of all senders, and the requests for them."""

from ringcast.core.model.address import Address
from tests.unit.layers.multicast.parts import SPEC, A, B, C, Parts, installation, run


def note(parts: Parts, sender: Address, *arrived: int) -> None:
    window = parts.group.windows[sender]
    for seqno in arrived:
        window.put(run(seqno, sender=sender))
        parts.gaps.note(sender, window)


def request(parts: Parts, now: float) -> list[tuple[Address, list[tuple[int, int]]]]:
    parts.env.now = now
    for name in parts.due():
        assert name == "repair"
        parts.gaps.on_timer()
    requested = [(sender, list(wanted)) for sender, wanted in parts.requested]
    parts.requested.clear()
    return requested


def test_gaps_of_several_senders_are_requested_by_one_timer() -> None:
    parts = Parts()
    note(parts, B, 1, 3)
    note(parts, C, 2)
    assert request(parts, SPEC.request_delay) == [(B, [(2, 2)]), (C, [(1, 1)])]
    assert parts.env.counters["requested"] == 2


def test_without_gaps_no_timer_runs() -> None:
    parts = Parts()
    note(parts, B, 1, 2, 3)
    assert parts.env.timers.deadline == float("inf")


def test_expired_gaps_are_requested_at_once() -> None:
    parts = Parts()
    note(parts, B, 1, 3)
    assert parts.gaps.expire(B)
    parts.gaps.requester.request_soon()
    assert request(parts, 0.0) == [(B, [(2, 2)])]
    assert not parts.gaps.expire(C)


def test_nothing_is_requested_of_a_sender_that_has_left() -> None:
    parts = Parts()
    note(parts, B, 1, 3)
    parts.gaps.forget(B)
    assert request(parts, 1.0) == []


def test_large_groups_spread_their_requests_at_random() -> None:
    parts = Parts()
    others = tuple(Address(n) for n in range(4, 11))
    parts.group.install(installation(A, B, C, *others, old=(A, B, C), number=2))
    note(parts, B, 1, 3)
    assert SPEC.request_delay < parts.env.timers.deadline < 2 * SPEC.request_delay
