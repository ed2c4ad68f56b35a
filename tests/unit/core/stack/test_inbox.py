"""The inbox: what the application has taken is delivered, and nothing sooner."""

import random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import CALL, SERVICE, Batch
from ringcast.core.model.events import Skipped, Suspected
from ringcast.core.stack.env import Env
from ringcast.core.stack.inbox import Inbox

A, B, ME = Address(1), Address(2), Address(9)


class Layer:
    """Stands for a reliable layer: notes what it is told."""

    def __init__(self) -> None:
        self.delivered: list[tuple[Address, int, int]] = []

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """Note it."""
        self.delivered.append((sender, up_to, nbytes))


def inbox() -> tuple[Inbox, Layer, Layer]:
    made = Inbox(Env(Peer(ME, "me", ""), random.Random(1)))
    group, pairs = Layer(), Layer()
    made.group, made.pairs = group, pairs
    return made, group, pairs


def batch(sender: Address, first: int, count: int, dest: Address | None = None) -> Batch:
    return Batch(sender, [b"xx"] * count, 2 * count, first=first, dest=dest)


def test_a_message_is_delivered_once_the_application_is_done_with_it() -> None:
    box, group, pairs = inbox()
    box.up(batch(A, 1, 3))
    box.up(batch(B, 5, 1, dest=ME))
    assert len(box.take(10)) == 2
    assert group.delivered == []
    box.consumed()
    assert group.delivered == [(A, 3, 6)]
    assert pairs.delivered == [(B, 5, 2)]
    assert box.nbytes == 0


def test_a_limit_splits_a_batch() -> None:
    box, group, _ = inbox()
    box.up(batch(A, 1, 5))
    (event,) = box.take(2)
    assert isinstance(event, Batch)
    assert (event.first, len(event)) == (1, 2)
    box.consumed()
    assert group.delivered == [(A, 2, 4)]
    (event,) = box.take(9)
    assert isinstance(event, Batch)
    assert (event.first, event.last) == (3, 5)


def test_events_keep_their_place() -> None:
    box, group, _ = inbox()
    box.up(batch(A, 1, 1))
    box.push(Suspected(B))
    box.push(Skipped(A, 2, 4, "late"))
    box.up(batch(A, 5, 1))
    kinds = [type(event).__name__ for event in box.take(9)]
    assert kinds == ["Batch", "Suspected", "Skipped", "Batch"]
    box.consumed()
    assert [up_to for _, up_to, _ in group.delivered] == [1, 4, 5]


def test_what_a_layer_keeps_counts_at_once_when_nothing_waits_before_it() -> None:
    box, group, _ = inbox()
    box.absorbed(batch(A, 1, 4))
    assert group.delivered == [(A, 4, 8)]
    assert box.take(9) == []


def test_what_a_layer_keeps_waits_for_what_comes_before() -> None:
    box, group, _ = inbox()
    box.up(batch(A, 1, 1))
    box.absorbed(batch(A, 2, 4))
    box.absorbed(batch(B, 1, 1))
    assert group.delivered == [(B, 1, 2)]
    box.take(1)
    box.consumed()
    assert [up_to for sender, up_to, _ in group.delivered if sender == A] == [1, 5]


def test_the_application_gets_a_list_of_its_own() -> None:
    box, _, _ = inbox()
    kept = batch(A, 1, 3)
    box.up(kept)
    (event,) = box.take(10)
    assert isinstance(event, Batch)
    assert isinstance(event.payloads, list)
    event.payloads.clear()
    assert len(kept) == 3


def test_a_flag_that_no_protocol_knows_is_not_let_in_by_that_of_a_service() -> None:
    box, group, _ = inbox()
    box.special_flags = 0xFF
    for first, flags in enumerate((16, CALL | 16, SERVICE | 32, CALL | SERVICE | 64), 1):
        box.up(Batch(A, [b"xx"], 2, first=first, flags=flags))
    assert box.env.counters["dropped_unknown_flags"] == 4
    assert not box.events
    assert [last for _, last, _ in group.delivered] == [1, 2, 3, 4]
