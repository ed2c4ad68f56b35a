"""The ack map: minimum, releases and views."""

from ringcast.core.reliable.ack_map import AckMap
from tests.unit.layers.multicast.parts import A, B, C, D, installation


def acks(**values: int) -> AckMap:
    ack_map = AckMap()
    ack_map.install(installation(A, B, C), 0)
    for name, ack in values.items():
        ack_map.acks[{"a": A, "b": B, "c": C}[name]] = ack
    return ack_map


def test_the_minimum_is_the_ack_of_the_slowest() -> None:
    assert acks(a=5, b=3, c=9).minimum == 3


def test_a_released_member_does_not_count() -> None:
    ack_map = acks(a=5, b=3, c=9)
    ack_map.released.add(B)
    assert ack_map.minimum == 5
    assert ack_map.positions(9, 9) == {A: 5, C: 9}


def test_members_at_the_minimum_are_waited_for_unless_they_have_everything() -> None:
    assert acks(a=5, b=3, c=3).waits_for(9) == (B, C)
    assert acks(a=3, b=3, c=3).waits_for(3) == ()
    assert AckMap().waits_for(3) == ()


def test_other_members_below_a_seqno_are_found() -> None:
    assert acks(a=0, b=3, c=4).below(4, A) == [B]


def test_an_ack_of_enough_counts_as_everything() -> None:
    assert acks(a=2, b=5, c=9).positions(5, 10) == {A: 2, B: 10, C: 10}


def test_a_view_removes_members_that_left_and_begins_new_ones_at_its_start() -> None:
    ack_map = acks(a=5, b=3, c=9)
    ack_map.released.add(B)
    ack_map.install(installation(A, C, D, old=(A, B, C), number=2), 5)
    assert ack_map.acks == {A: 5, C: 9, D: 5}
    assert not ack_map.released
