"""What every reliable multicast does with messages of strangers, with repairs and announcements."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import ViewId
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.wire.frames import Data, Last, Nak
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Net
from tests.unit.layers.ladder import A, B, C, Climber, climbers

MESSAGE = bytes(100)
STRANGER = Address(9)


def group() -> tuple[Net, list[Climber]]:
    return climbers(3, NakAck4(capacity=100), Unicast(), mtu=5_000)


def data(member: Climber, origin: Address, number: int, first: int = 1, low: int = 0) -> Data:
    assert member.view is not None
    view = ViewId(number, member.view.coordinator)
    return Data(view, 0, origin, first, low, 0, 0, [MESSAGE], len(MESSAGE), len(MESSAGE))


def number(member: Climber) -> int:
    assert member.view is not None
    return member.view.id.number


def test_messages_of_a_stranger_in_this_view_are_counted_and_dropped() -> None:
    _, (a, _, _) = group()
    a.receive(data(a, STRANGER, number(a)), STRANGER)
    assert a.env.counters["dropped_not_member"] == 1
    a.receive(data(a, STRANGER, number(a) - 1), STRANGER)
    assert a.env.counters["dropped_not_member"] == 2


def test_messages_of_a_later_view_wait_only_if_their_sender_brings_them() -> None:
    _, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    a.receive(data(a, STRANGER, number(a) + 1), B)
    assert layer._early.parked_bytes == 0
    assert a.env.counters["dropped_not_member"] == 1
    a.receive(data(a, STRANGER, number(a) + 1), STRANGER)
    assert layer._early.parked_bytes > 0


def test_what_arrives_behind_a_gap_costs_no_look_at_the_gaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, (a, _, _) = group()
    missing: list[int] = []
    note = SenderGaps.note

    def count(gaps: SenderGaps, sender: Address, window: ReceiveWindow) -> None:
        missing.append(window.gaps.count)
        note(gaps, sender, window)

    monkeypatch.setattr(SenderGaps, "note", count)
    for first in (1, 3, 4, 6, 7, 2, 5):
        a.receive(data(a, B, number(a), first), B)
    assert missing == [1, 2, 1, 0]
    assert a.get(NakAck4Layer).windows[B].handed == 7


def test_messages_that_are_sent_again_are_counted() -> None:
    net, (a, _, _) = group()
    a.send([MESSAGE] * 4)
    net.settle()
    b = net.members[B]
    b.is_slow = True
    a.send([MESSAGE] * 4)
    a.receive(Nak(A, RangeSet([(5, 7)])), B)
    assert a.env.counters["resent"] == 3
    assert a.env.counters["resent_bytes"] == 300


def test_a_request_for_what_was_freed_is_answered_with_what_is_left() -> None:
    net, (a, _, _) = group()
    a.send([MESSAGE] * 4)
    net.settle()
    a.env.out.frames.clear()
    a.receive(Nak(A, RangeSet([(4, 4)])), B)
    assert [frame.kind for _, frame in a.env.out.frames] == ["LAST"]


def test_what_its_sender_freed_is_skipped_and_counted() -> None:
    _, (a, _, _) = group()
    assert a.view is not None
    a.receive(data(a, B, number(a), first=2), B)
    a.receive(Last(a.view.id, 0, 3, 5), B)
    assert a.env.counters["skipped"] == 2, "two had been heard of; the third was not"
    assert a.get(NakAck4Layer).handed()[B] == 3


def test_messages_that_all_members_have_are_freed_at_receivers() -> None:
    _, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    a.receive(data(a, B, number(a)), B)
    a.take()
    assert layer.windows[B].low == 0
    a.receive(data(a, B, number(a), first=2, low=1), B)
    assert layer.windows[B].low == 1


def test_there_is_no_room_while_repairs_wait() -> None:
    _, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    a.send([MESSAGE] * 4)
    assert layer.room(None)[0] > 0
    layer._repairs._queue.request(B, RangeSet([(1, 2)]), 0.0, 0.0)
    assert layer.room(None) == (0, 0)


def test_another_member_is_asked_once_the_one_that_was_is_suspected() -> None:
    _, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    layer.aim(ViewId(9, A), {B: 2, C: 0}, ())
    layer.on_suspect(B, True)
    assert layer._flush.holders == {B: C}
