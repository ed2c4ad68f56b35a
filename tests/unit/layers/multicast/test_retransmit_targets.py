"""Whether a retransmission goes to one member or to the group."""

from ringcast.core.model.address import Address
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.multicast.retransmit_targets import RetransmitTargets
from tests.unit.layers.multicast.parts import A, B, C, D, Parts, run

Chosen = list[tuple[int, int, Address | None]]


def choose(targets: RetransmitTargets, requester: Address, first: int, count: int = 1) -> Chosen:
    runs = targets.choose([run(first, count, A)], requester)
    return [(part.first, part.last, target) for part, target in runs]


def targets_of(parts: Parts, answer: str = "auto") -> RetransmitTargets:
    return RetransmitTargets(parts.env, NakAck4(answer=answer))


def test_the_first_requester_is_answered_alone_and_the_second_by_the_group() -> None:
    targets = targets_of(Parts())
    assert choose(targets, B, 1) == [(1, 1, B)]
    assert choose(targets, C, 1) == [(1, 1, None)]
    assert choose(targets, D, 1) == [], "the group has just been sent it"


def test_a_member_that_repeats_its_request_is_answered_alone() -> None:
    targets = targets_of(Parts())
    assert choose(targets, B, 1) == choose(targets, B, 1) == [(1, 1, B)]


def test_only_what_the_group_was_not_sent_is_repeated() -> None:
    targets = targets_of(Parts())
    choose(targets, B, 2)
    choose(targets, C, 2)
    assert choose(targets, C, 1, 3) == [(1, 1, C), (3, 3, C)]


def test_earlier_requests_are_forgotten_after_the_delay() -> None:
    parts = Parts()
    targets = targets_of(parts)
    choose(targets, B, 1)
    parts.env.now = 1.0
    assert choose(targets, C, 1) == [(1, 1, C)]


def test_messages_of_others_go_to_the_requester() -> None:
    targets = targets_of(Parts())
    for requester in (B, C):
        ((_, target),) = targets.choose([run(1, sender=D)], requester)
        assert target == requester


def test_a_fixed_policy_decides_for_all() -> None:
    assert choose(targets_of(Parts(), "unicast"), B, 1) == [(1, 1, B)]
    assert choose(targets_of(Parts(), "multicast"), B, 1) == [(1, 1, None)]
