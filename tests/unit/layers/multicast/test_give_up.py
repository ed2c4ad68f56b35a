"""What the layers above ask about missing messages, and giving them up."""

from ringcast.core.reliable.windows import Hole
from ringcast.layers.multicast.give_up import GiveUp
from tests.unit.layers.multicast.parts import B, C, D, Parts, run


def give_up(parts: Parts) -> GiveUp:
    return GiveUp(parts.group, parts.gaps, parts.flush, parts.hand_up, parts.env.counters)


def put(parts: Parts, *seqnos: int) -> None:
    for seqno in seqnos:
        parts.hand_up(B, parts.group.windows[B].put(run(seqno)))


def test_the_first_gap_is_given_up_as_a_hole_in_its_place() -> None:
    parts = Parts()
    put(parts, 1, 3, 5)
    give_up(parts).give_up(B, 1, 3, "test")
    spans = [(item.first, item.last, isinstance(item, Hole)) for _, item in parts.handed]
    assert spans == [(1, 1, False), (2, 2, True), (3, 3, False)]
    assert parts.env.counters["gave_up"] == 1


def test_all_gaps_up_to_a_seqno_are_given_up_but_none_that_is_unknown() -> None:
    parts = Parts()
    put(parts, 1, 3, 5)
    give_up(parts).give_up(B, 1, 99, "test")
    assert parts.group.windows[B].handed == parts.group.windows[B].high == 5
    assert parts.env.counters["gave_up"] == 2


def test_giving_up_nothing_changes_nothing() -> None:
    parts = Parts()
    give_up(parts).give_up(B, 1, 9, "test")
    give_up(parts).give_up(D, 1, 9, "test")
    assert not parts.handed
    assert not parts.env.counters


def test_the_last_gap_before_a_view_ends_the_flush() -> None:
    parts = Parts()
    put(parts, 2)
    parts.flush.aim(parts.group.view, {B: 2, C: 0}, ())
    assert parts.membership.reached_count == 0
    give_up(parts).give_up(B, 1, 1, "test")
    assert parts.membership.reached_count == 1


def test_expected_messages_are_missing_until_they_arrive() -> None:
    parts = Parts()
    asked = give_up(parts)
    asked.expect(B, 2)
    assert asked.lacks(B, 2, 2)
    assert not asked.lacks(B, 3, 9)
    assert not asked.lacks(D, 1, 1)
    assert parts.env.timers.deadline < float("inf")
    put(parts, 1, 2)
    assert not asked.lacks(B, 2, 2)


def test_the_highest_arrival_counts_whether_or_not_it_is_in_order() -> None:
    parts = Parts()
    asked = give_up(parts)
    assert asked.arrived(D) == asked.arrived(B) == 0
    put(parts, 1, 4)
    assert asked.arrived(B) == 4
    asked.expect(B, 9)
    assert asked.arrived(B) == 4


def test_a_later_gap_can_be_given_up_before_an_earlier_one() -> None:
    parts = Parts()
    put(parts, 1, 3, 5)
    give_up(parts).give_up(B, 4, 4, "test")
    assert [item.first for _, item in parts.handed] == [1]
    assert list(parts.group.windows[B].gaps) == [(2, 2)]
    put(parts, 2)
    spans = [(item.first, item.last, isinstance(item, Hole)) for _, item in parts.handed]
    assert (4, 4, True) in spans
    assert parts.group.windows[B].handed == 5


def test_the_messages_beside_a_gap_are_found() -> None:
    parts = Parts()
    asked = give_up(parts)
    assert asked.beside_gap(B, 2) == asked.beside_gap(D, 2) == []
    put(parts, 1, 3, 6)
    assert [run.first for run in asked.beside_gap(B, 2)] in ([3], [1, 3])
    assert [run.first for run in asked.beside_gap(B, 5)] == [3, 6]
