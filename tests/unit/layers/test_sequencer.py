"""Total order: the script, what waits for it, and the end of a view."""

from random import Random

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import FRAGMENT, INTERNAL, Batch
from ringcast.core.model.events import Skipped
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer
from ringcast.errors import ConfigError
from ringcast.layers.sequencer import _ENTRY, Sequencer, SequencerLayer
from tests.unit.layers.ladder import A, B, C, D

Run = tuple[Address, int, int]


class Top(Layer):
    """Notes what comes up, in order."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.runs: list[Run] = []
        self.kept: list[Run] = []
        self.resumed = 0

    def up(self, batch: Batch) -> None:
        self.runs.append((batch.sender, batch.first, batch.last))

    def skipped(self, event: Skipped) -> None:
        self.runs.append((event.sender, event.first, event.last))

    def absorbed(self, batch: Batch) -> None:
        self.kept.append((batch.sender, batch.first, batch.last))

    def resume(self) -> None:
        self.resumed += 1


class Below(Layer):
    """Takes what is sent, while there is room."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.free = 1_000
        self.sent: list[list[tuple[Address, int]]] = []

    def room(self, dest: Address | None) -> tuple[int, int]:
        return self.free, 1 << 20

    def down(self, batch: Batch) -> None:
        assert batch.flags & INTERNAL
        self.free -= 1
        (payload,) = batch.payloads
        self.sent.append([(Address(s), n) for s, n in _ENTRY.iter_unpack(payload)])


class Rig:
    """One member of a group of four: A is the sequencer."""

    def __init__(self, me: Address, spec: Sequencer | None = None) -> None:
        self.env = Env(Peer(me, f"m{me}", ""), Random(1))
        self.layer = SequencerLayer(self.env, spec or Sequencer())
        self.top, self.below = Top(self.env), Below(self.env)
        self.layer.above, self.layer.below = self.top, self.below
        self.install(A, B, C, D)

    def install(self, *members: Address) -> None:
        peers = tuple(Peer(member, f"m{member}", "") for member in members)
        view = View(ViewId(1, members[0]), peers)
        self.layer.on_view(Installation(view, None, {}, members, ()))

    def come(self, sender: Address, first: int, last: int) -> None:
        self.layer.up(Batch(sender, [b"x"] * (last - first + 1), last - first + 1, first=first))

    def order(self, first: int, *entries: tuple[Address, int], sender: Address = A) -> None:
        payload = b"".join(_ENTRY.pack(*entry) for entry in entries)
        batch = Batch(sender, [payload], len(payload), first=first, flags=INTERNAL)
        self.layer.up(batch)

    def keep(self, sender: Address, first: int, last: int) -> None:
        payloads = [b"f"] * (last - first + 1)
        self.layer.absorbed(Batch(sender, payloads, len(payloads), first=first, flags=FRAGMENT))

    def held(self) -> int:
        return self.layer.snapshot().held


def test_messages_of_others_wait_until_an_order_names_them() -> None:
    rig = Rig(B)
    rig.come(C, 1, 5)
    assert rig.top.runs == []
    assert rig.held() == 5
    rig.order(1, (C, 5))
    assert rig.top.runs == [(C, 1, 5)]
    assert rig.held() == 0
    assert rig.top.kept == [(A, 1, 1)], "the ORDER itself counts as taken after what it names"


def test_own_messages_wait_as_well() -> None:
    rig = Rig(B)
    rig.come(B, 1, 2)
    assert rig.top.runs == []
    rig.order(1, (B, 2))
    assert rig.top.runs == [(B, 1, 2)]


def test_the_first_message_of_each_sender_that_waits_is_known() -> None:
    rig = Rig(B)
    rig.come(C, 1, 5)
    rig.come(B, 1, 2)
    assert rig.layer.held_from() == {B: 1, C: 1}
    rig.order(1, (C, 3), (D, 1))
    rig.come(A, 2, 4)
    assert rig.layer.held_from() == {A: 1, B: 1, C: 4}, "the ORDER waits for D, and A behind it"
    rig.come(D, 1, 1)
    assert rig.layer.held_from() == {B: 1, C: 4}


def test_messages_of_the_sequencer_stand_where_they_are_in_its_stream() -> None:
    rig = Rig(B)
    rig.come(A, 1, 3)
    assert rig.top.runs == [(A, 1, 3)]
    rig.order(4, (C, 2))
    rig.come(A, 5, 6)
    assert rig.top.runs == [(A, 1, 3)], "messages of C stand before them"
    rig.come(C, 1, 2)
    assert rig.top.runs == [(A, 1, 3), (C, 1, 2), (A, 5, 6)]


def test_an_order_delivers_a_part_of_a_run() -> None:
    rig = Rig(B)
    rig.come(C, 1, 10)
    rig.order(1, (C, 4))
    assert rig.top.runs == [(C, 1, 4)]
    assert rig.held() == 6
    rig.order(2, (D, 1), (C, 10))
    assert rig.top.runs == [(C, 1, 4)]
    rig.come(D, 1, 3)
    assert rig.top.runs == [(C, 1, 4), (D, 1, 1), (C, 5, 10)]


def test_the_entries_of_an_order_are_followed_in_turn() -> None:
    rig = Rig(B)
    rig.order(1, (C, 2), (D, 2), (C, 4))
    rig.come(D, 1, 2)
    assert rig.top.runs == []
    rig.come(C, 1, 3)
    assert rig.top.runs == [(C, 1, 2), (D, 1, 2)]
    rig.come(C, 4, 4)
    assert rig.top.runs == [(C, 1, 2), (D, 1, 2), (C, 3, 3), (C, 4, 4)]


def test_the_end_of_a_view_delivers_the_script_and_then_by_seniority() -> None:
    rig = Rig(B)
    rig.come(D, 1, 4)
    rig.come(C, 1, 2)
    rig.come(B, 1, 3)
    rig.order(1, (D, 2), (C, 9))
    rig.come(A, 2, 2)
    assert rig.top.runs == [(D, 1, 2)]
    rig.layer.flush()
    rest = [(C, 1, 2), (A, 2, 2), (B, 1, 3), (D, 3, 4)]
    assert rig.top.runs == [(D, 1, 2), *rest]
    assert rig.held() == 0


def test_members_that_got_the_same_in_another_sequence_end_a_view_alike() -> None:
    one, other = Rig(B), Rig(C)
    runs = [(B, 1, 2), (C, 1, 3), (D, 1, 1), (D, 2, 2)]
    for run in runs:
        one.come(*run)
    one.order(1, (D, 1), (B, 1))
    other.order(1, (D, 1), (B, 1))
    for run in reversed(runs[:2]):
        other.come(*run)
    for run in runs[2:]:
        other.come(*run)
    one.layer.flush()
    other.layer.flush()
    assert _messages(one) == _messages(other)
    assert len(_messages(one)) == 7


def test_a_view_begins_with_nothing_of_the_former_one() -> None:
    rig = Rig(A)
    rig.come(B, 1, 2)
    rig.layer.flush()
    rig.install(A, B)
    rig.layer.on_timer("order")
    assert rig.below.sent == [], "what a view's end has delivered needs no ORDER"
    rig.come(B, 3, 3)
    rig.layer.on_timer("order")
    assert rig.below.sent == [[(B, 3)]]


def test_the_sequencer_names_what_has_arrived_in_one_message() -> None:
    rig = Rig(A)
    rig.come(B, 1, 2)
    rig.come(C, 1, 7)
    rig.come(B, 3, 4)
    assert rig.env.timers.deadline == rig.env.now
    rig.layer.on_timer("order")
    assert rig.below.sent == [[(C, 7), (B, 4)]]
    assert rig.env.counters["orders_sent"] == 1


def test_an_order_has_no_more_entries_than_the_setting_allows() -> None:
    rig = Rig(A, Sequencer(order_entries=2))
    for sender in (B, C, D):
        rig.come(sender, 1, 1)
    rig.layer.on_timer("order")
    assert rig.below.sent == [[(B, 1), (C, 1)], [(D, 1)]]


def test_a_member_that_is_not_the_sequencer_sends_no_order() -> None:
    rig = Rig(B)
    rig.come(C, 1, 1)
    rig.layer.on_timer("order")
    assert rig.below.sent == []


def test_resume_sends_the_order_before_the_application_gets_the_room() -> None:
    rig = Rig(A)
    rig.below.free = 0
    rig.come(B, 1, 3)
    rig.layer.on_timer("order")
    assert rig.below.sent == []
    rig.below.free = 1
    rig.layer.resume()
    assert rig.below.sent == [[(B, 3)]]
    assert rig.below.free == 0
    assert rig.top.resumed == 1


def test_entries_that_name_no_other_member_are_counted_and_left_out() -> None:
    rig = Rig(B)
    rig.come(C, 1, 1)
    rig.order(1, (Address(99), 5), (A, 7), (C, 1))
    assert rig.top.runs == [(C, 1, 1)]
    assert rig.env.counters["dropped_bad_order"] == 2


def test_an_order_of_another_member_orders_nothing() -> None:
    rig = Rig(B)
    rig.come(C, 1, 1)
    rig.order(2, (C, 1), sender=D)
    assert rig.top.runs == []
    assert rig.env.counters["dropped_bad_order"] == 1
    assert rig.top.kept == [(D, 2, 2)]


def test_a_torn_entry_at_the_end_of_an_order_is_left_out() -> None:
    rig = Rig(B)
    rig.come(C, 1, 2)
    payload = _ENTRY.pack(C, 1) + b"torn"
    rig.layer.up(Batch(A, [payload], len(payload), first=1, flags=INTERNAL))
    assert rig.top.runs == [(C, 1, 1)]


def test_fragments_that_nothing_precedes_count_as_taken_at_once() -> None:
    rig = Rig(B)
    rig.keep(C, 1, 3)
    assert rig.top.kept == [(C, 1, 3)], "or a message larger than the window would never be whole"
    rig.come(C, 4, 4)
    rig.keep(C, 5, 6)
    assert rig.top.kept == [(C, 1, 3)], "these stand behind a message that waits"
    rig.order(1, (C, 4))
    assert rig.top.runs == [(C, 4, 4)]
    assert rig.top.kept == [(C, 1, 3), (C, 5, 6), (A, 1, 1)]


def test_fragments_of_the_sequencer_keep_their_place() -> None:
    rig = Rig(B)
    rig.order(1, (C, 1))
    rig.keep(A, 2, 3)
    assert rig.top.kept == []
    rig.come(C, 1, 1)
    assert rig.top.kept == [(A, 1, 1), (A, 2, 3)]


def test_the_sequencer_names_no_fragments() -> None:
    rig = Rig(A)
    rig.keep(B, 1, 3)
    rig.layer.on_timer("order")
    assert rig.below.sent == []


def test_skipped_messages_are_told_in_their_place() -> None:
    rig = Rig(B)
    rig.come(C, 1, 1)
    rig.layer.skipped(Skipped(C, 2, 3, "lost", False))
    rig.order(1, (C, 3))
    assert rig.top.runs == [(C, 1, 1), (C, 2, 3)]


def test_messages_to_one_member_pass() -> None:
    rig = Rig(B)
    rig.layer.up(Batch(C, [b"x"], 1, dest=B, first=1))
    rig.layer.skipped(Skipped(D, 1, 1, "lost", True))
    rig.layer.absorbed(Batch(C, [b"f"], 1, dest=B, first=2, flags=FRAGMENT))
    assert rig.top.runs == [(C, 1, 1), (D, 1, 1)]
    assert rig.top.kept == [(C, 2, 2)]


@pytest.mark.parametrize("entries", [0, 1_025])
def test_settings_out_of_range_are_refused(entries: int) -> None:
    with pytest.raises(ConfigError, match="order_entries"):
        Sequencer(order_entries=entries)


def _messages(rig: Rig) -> list[tuple[Address, int]]:
    """What came up, message by message: how it is cut into runs does not matter."""
    return [(sender, n) for sender, first, last in rig.top.runs for n in range(first, last + 1)]
