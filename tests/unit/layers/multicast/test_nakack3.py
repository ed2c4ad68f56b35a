"""NAKACK3: one table per sender that only stability purges, here told by hand what is stable."""

from collections.abc import Callable

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.frames import Data, Ending, Frame, Last, SenderMarks
from ringcast.errors import ConfigError
from ringcast.layers.multicast.nakack3 import NakAck3, NakAck3Layer
from tests.unit.harness import Member, Net, lose, numbered

A, B, C = Address(1), Address(2), Address(3)


def group(count: int = 3, spec: NakAck3 | None = None) -> Net:
    """This many members in one view, without stability."""
    spec = spec or NakAck3()
    net = Net(*(Member(address, [spec], 60_000) for address in range(1, count + 1)))
    net.install(*net.members)
    net.run(0.5)
    return net


def table(net: Net, address: Address) -> NakAck3Layer:
    part = net.members[address].parts[0]
    assert isinstance(part, NakAck3Layer)
    return part


def stable(net: Net, delivered: int, high: int, sender: Address = A) -> None:
    """The result of a round, at everybody."""
    for address in net.members:
        table(net, address).stable([SenderMarks(sender, delivered, high)])


def is_from(first: int) -> Callable[[Frame], bool]:
    return lambda frame: isinstance(frame, Data) and frame.first >= first


def is_tail(first: int) -> Callable[[Frame], bool]:
    """The messages from this one on, and what would announce them."""
    return lambda frame: isinstance(frame, Last) or is_from(first)(frame)


def send_each(net: Net, count: int, start: int = 1) -> None:
    for payload in numbered(count, start):
        net.members[A].send([payload])


# --- the table ----------------------------------------------------------------------------------


def test_delivery_moves_the_mark_and_keeps_the_message() -> None:
    net = group()
    net.members[A].send(numbered(10))
    net.run(1.0)
    for address in (B, C):
        assert net.members[address].payloads(A) == numbered(10)
        window = table(net, address).windows[A]
        assert (window.low, window.delivered, window.high) == (0, 10, 10)
        (run,) = window.get(RangeSet([(3, 5)]))
        assert list(run.payloads) == numbered(3, 3)
    assert table(net, A).sent.outstanding == 10


def test_with_discard_delivered_a_receiver_frees_at_once() -> None:
    net = group(spec=NakAck3(discard_delivered=True))
    net.members[A].send(numbered(10))
    net.run(1.0)
    window = table(net, B).windows[A]
    assert (window.low, window.nbytes) == (10, 0)
    assert table(net, A).sent.outstanding == 10


def test_a_result_purges_up_to_the_minimum_at_all_members() -> None:
    net = group()
    send_each(net, 10)
    net.run(1.0)
    stable(net, 7, 10)
    assert [table(net, x).windows[A].low for x in (B, C)] == [7, 7]
    assert table(net, A).sent.low == 7
    stable(net, 4, 10)
    assert table(net, A).sent.low == 7, "a lower result than before does nothing"
    stable(net, 10, 10)
    assert all(table(net, x).windows[A].nbytes == 0 for x in (B, C))
    assert table(net, A).sent.nbytes == 0


def test_a_purge_never_passes_what_the_own_application_has_taken() -> None:
    net = group()
    net.members[B].is_slow = True
    net.members[A].send(numbered(10))
    net.run(1.0)
    net.members[B].take(4)
    table(net, B).stable([SenderMarks(A, 9, 10)])
    assert table(net, B).windows[A].low == 4


def test_marks_are_of_all_senders_this_member_included() -> None:
    net = group()
    net.members[B].is_slow = True
    net.members[A].send(numbered(10))
    net.members[B].send(numbered(3))
    net.run(1.0)
    assert set(table(net, B).marks()) == {(B, 0, 3), (A, 0, 10), (C, 0, 0)}
    assert set(table(net, A).marks()) == {(A, 10, 10), (B, 3, 3), (C, 0, 0)}


def test_a_sender_waits_at_the_bound_of_the_table_for_a_result() -> None:
    net = group(spec=NakAck3(capacity=10))
    net.members[A].send(numbered(15))
    net.run(1.0)
    assert net.members[A].waiting == 5
    stable(net, 3, 10)
    net.run(0.2)
    assert net.members[A].waiting == 2
    stable(net, 10, 13)
    net.run(0.2)
    assert net.members[B].payloads(A) == numbered(15)


def test_a_sender_waits_at_the_bound_of_bytes() -> None:
    net = group(spec=NakAck3(max_bytes=1_000))
    net.members[A].send(numbered(15, size=100))
    net.run(1.0)
    assert net.members[A].waiting == 5


def test_one_member_alone_never_blocks() -> None:
    net = group(1, NakAck3(capacity=10))
    net.members[A].send(numbered(1_000))
    net.settle(5.0)
    assert net.members[A].payloads(A) == numbered(1_000)
    assert table(net, A).sent.outstanding == 0


def test_without_loopback_one_member_alone_never_blocks_either() -> None:
    net = group(1, NakAck3(capacity=10, loopback=False))
    net.members[A].send(numbered(1_000))
    net.settle(5.0)
    assert net.members[A].messages == []
    assert table(net, A).sent.outstanding == 0


def test_a_view_that_leaves_one_member_alone_frees_its_table() -> None:
    net = group(2, NakAck3(capacity=10))
    net.members[A].send(numbered(20))
    net.run(1.0)
    assert net.members[A].waiting == 10
    net.install(A)
    net.settle(5.0)
    assert net.members[A].payloads(A) == numbered(20)


# --- losses -------------------------------------------------------------------------------------


def test_a_loss_is_asked_for_and_answered_from_the_table() -> None:
    net = group()
    net.policy = lose(lambda frame: isinstance(frame, Data) and frame.first == 5, 2)
    send_each(net, 10)
    net.run(1.0)
    assert all(net.members[x].payloads(A) == numbered(10) for x in (B, C))


def test_a_member_behind_the_result_of_a_round_ago_asks() -> None:
    """The last messages are lost to all, and so is every announcement of them."""
    net = group()
    net.policy = lose(is_tail(6), 10**6)
    send_each(net, 10)
    net.run(0.5)
    net.policy = lose(lambda frame: isinstance(frame, Last), 10**6)
    stable(net, 5, 10)
    net.run(0.5)
    assert net.sent["NAK"] == 0, "what is known since this round may be on its way"
    stable(net, 5, 10)
    net.run(0.5)
    assert all(net.members[x].payloads(A) == numbered(10) for x in (B, C))


def test_the_sender_announces_its_last_message_until_it_is_stable() -> None:
    net = group()
    net.members[A].send(numbered(3))
    net.run(2.0)
    announced = net.sent["LAST"]
    assert announced >= 15
    stable(net, 3, 3)
    net.settle(1.0)
    assert net.sent["LAST"] <= announced + 1


def test_a_member_that_missed_the_result_purges_as_the_sender_has() -> None:
    net = group()
    net.members[A].send(numbered(3))
    net.run(1.0)
    table(net, A).stable([SenderMarks(A, 3, 3)])
    net.settle(1.0)
    assert table(net, B).windows[A].low == 3


# --- views --------------------------------------------------------------------------------------


def flush(net: Net, departed: Address, survivors: tuple[Address, ...]) -> None:
    """What a membership does when a member has crashed, in one go."""
    held = {}
    for address in survivors:
        table(net, address).freeze([departed])
        (held[address],) = table(net, address).held([departed])
    last = max(entry.handed for entry in held.values())
    holder = next(address for address, entry in held.items() if entry.handed == last)
    low = max(entry.low for entry in held.values())
    ending = Ending(departed, last, holder, low)
    for address in survivors:
        starts = {x: table(net, x).sent.high for x in survivors}
        table(net, address).aim(NO_VIEW, starts, (ending,))


def test_survivors_give_each_other_the_last_messages_of_a_crashed_sender() -> None:
    net = group()
    net.policy = lambda flight: () if flight.target == C and is_tail(6)(flight.frame) else (0.001,)
    send_each(net, 10)
    net.run(0.05)
    assert net.members[B].payloads(A) == numbered(10)
    assert net.members[C].payloads(A) == numbered(5)
    del net.members[A]
    net.policy = lambda flight: () if flight.target == A else (0.001,)
    flush(net, A, (B, C))
    net.run(0.5)
    assert net.members[C].payloads(A) == numbered(10)
    assert net.members[B].reached_count == net.members[C].reached_count == 1


def test_windows_of_leavers_go_and_those_of_newcomers_begin_at_their_start() -> None:
    net = group()
    send_each(net, 5)
    net.run(0.5)
    net.members[Address(4)] = Member(4, [NakAck3()], 60_000)
    net.install(A, B, Address(4))
    net.run(0.5)
    assert set(table(net, A).windows) == {B, Address(4)}
    assert table(net, Address(4)).windows[A].low == 5
    send_each(net, 5, 6)
    net.run(0.5)
    assert net.members[Address(4)].payloads(A) == numbered(5, 6)


def test_what_is_kept_of_a_departed_sender_goes_with_the_first_result_of_the_view() -> None:
    net = group()
    net.members[C].send(numbered(5))
    net.run(0.5)
    net.install(A, B)
    assert table(net, A)._group.departed[C].nbytes > 0
    table(net, A).stable([])
    assert table(net, A)._group.departed == {}


def test_results_do_not_ask_for_what_former_views_knew_of() -> None:
    net = group()
    send_each(net, 5)
    net.run(0.5)
    stable(net, 5, 50)
    net.install(A, B, C)
    stable(net, 5, 5)
    assert not table(net, B).windows[A].gaps


# --- settings -----------------------------------------------------------------------------------


def test_the_table_is_larger_than_a_window_and_has_bounds() -> None:
    spec = NakAck3()
    assert (spec.capacity, spec.max_bytes) == (65_536, 64_000_000)
    assert spec.build(Member(1, [spec], 60_000).env).bounds == (65_536, 64_000_000)


def test_settings_below_their_bounds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"NakAck3.capacity is 0"):
        NakAck3(capacity=0)
