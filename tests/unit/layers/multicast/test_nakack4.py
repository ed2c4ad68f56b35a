"""What may be on its way, shared by all who send at the same time; and what came too early."""

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Data, Last
from ringcast.layers.multicast.flight_control import ACTIVE_SENDER_SECONDS
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Net, lose
from tests.unit.layers.ladder import A, B, C, Climber, climbers

FLIGHT = 12_000
MESSAGE = bytes(100)


def group(count: int = 3) -> tuple[Net, list[Climber]]:
    spec = NakAck4(max_bytes=100_000, flight_bytes=FLIGHT)
    return climbers(count, spec, Unicast(), mtu=5_000)


def space(member: Climber) -> int:
    """How many bytes there is room for."""
    return member.get(NakAck4Layer).room(None)[1]


def test_one_sender_has_all_of_it() -> None:
    net, (a, _, _) = group()
    a.send([MESSAGE])
    assert space(a) == FLIGHT - len(MESSAGE)
    net.settle()
    assert space(a) == FLIGHT, "a burst is no larger, even if nothing is outstanding"


def test_senders_that_send_at_the_same_time_share_the_flight() -> None:
    net, (a, b, c) = group()
    for member in (a, b, c):
        member.send([MESSAGE])
    net.run(ACTIVE_SENDER_SECONDS / 2)
    a.send([MESSAGE])
    kept = a.get(NakAck4Layer)
    on_its_way = (kept.sent.high - kept._flight.arrived) * len(MESSAGE)
    assert on_its_way
    assert space(a) == FLIGHT // 3 - on_its_way


def test_a_sender_that_has_stopped_leaves_the_flight_to_the_others() -> None:
    net, (a, b, _) = group()
    b.send([MESSAGE])
    net.settle()
    net.run(2 * ACTIVE_SENDER_SECONDS)
    a.send([MESSAGE])
    assert space(a) == FLIGHT - len(MESSAGE)


def test_all_get_everything_while_they_share() -> None:
    net, members = group()
    for member in members:
        member.send([MESSAGE] * 500)
    net.settle()
    for member in members:
        for sender in (A, B, C):
            assert member.payloads(sender) == [MESSAGE] * 500


def test_a_lost_last_message_is_repaired_long_before_the_tick() -> None:
    net, (a, b, c) = group()
    net.policy = lose(lambda frame: isinstance(frame, Data))
    a.send([MESSAGE])
    net.run(0.3 * NakAck4().xmit_interval)
    assert b.payloads(A) == c.payloads(A) == [MESSAGE]
    assert net.sent["NAK"] == 1


def test_a_pause_is_announced_once_and_there_is_none_while_messages_follow_each_other() -> None:
    net, (a, _, _) = group()
    pause = 0.1 * NakAck4().xmit_interval
    for _ in range(5):
        a.send([MESSAGE])
        net.run(0.6 * pause)
    assert net.sent["LAST"] == 0
    net.run(3 * pause)
    assert net.sent["LAST"] == 1


def later(member: Climber, ahead: int) -> ViewId:
    """This many views after the member's."""
    assert member.view is not None
    return ViewId(member.view.id.number + ahead, member.view.id.coordinator)


def too_early(member: Climber, ahead: int, seqno: int = 1, start: int = 0) -> None:
    """A message of A comes that was sent this many views after the member's, or is repeated from
    there; `start` is the last that was sent before."""
    frame = Data(
        later(member, ahead), start, A, seqno, 0, 0, 0, [MESSAGE], len(MESSAGE), len(MESSAGE)
    )
    member.receive(frame, A)


def test_what_was_sent_in_a_later_view_waits_for_that_view() -> None:
    net, (_, b, _) = group()
    too_early(b, 2)
    assert b.payloads(A) == []
    net.install(A, B, C)
    assert b.payloads(A) == [], "the view between them is installed"
    net.install(A, B, C)
    assert b.payloads(A) == [MESSAGE]


def test_what_was_sent_in_a_view_that_never_comes_is_never_handed_up() -> None:
    net, (_, b, _) = group()
    too_early(b, 3)
    net.install(A, B, C)
    assert b.payloads(A) == []
    net.install(B, C)
    net.settle()
    assert b.payloads(A) == []


def test_what_comes_before_the_view_that_waits_is_handed_up_though_its_sender_is_ahead() -> None:
    _, (_, b, _) = group()
    b.get(NakAck4Layer).aim(later(b, 2), {A: 2}, ())
    too_early(b, 2, seqno=3, start=2)
    too_early(b, 2, seqno=1, start=2)
    too_early(b, 2, seqno=2, start=2)
    b.take()
    assert b.payloads(A) == [MESSAGE] * 2, "the third was sent in the view that waits"
    assert b.reached_count == 1


def test_what_its_sender_has_given_up_does_not_hold_the_view_that_waits() -> None:
    _, (_, b, _) = group()
    b.get(NakAck4Layer).aim(later(b, 2), {A: 2}, ())
    b.receive(Last(later(b, 3), 5, 5, 5), A)
    assert b.reached_count == 0, "in a view after that one this member may not be waited for"
    b.receive(Last(later(b, 2), 2, 4, 4), A)
    assert b.reached_count == 1
    assert b.get(NakAck4Layer).handed()[A] == 2, "what comes later is for the next view to tell"


def test_an_excused_member_is_counted_once_and_frees_what_only_it_lacks() -> None:
    net, (a, b, _) = group()
    layer = a.get(NakAck4Layer)
    b.is_slow = True
    a.send([MESSAGE] * 4)
    net.run(1.0)
    assert (layer.sent.low, layer.acks[B]) == (0, 0)
    layer.forget(5, [B])
    assert a.env.counters["excused"] == 0, "no message has this number yet"
    layer.forget(0, [B])
    assert a.env.counters["excused"] == 0, "it has taken nothing more"
    layer.forget(4, [B])
    assert a.env.counters["excused"] == 1
    assert layer.sent.low == 4
    layer.forget(4, [B])
    assert a.env.counters["excused"] == 1
    assert space(a) == FLIGHT, "what it lacks is not in flight any more"


def test_only_other_members_are_released_and_each_once() -> None:
    net, (a, b, _) = group()
    layer = a.get(NakAck4Layer)
    b.is_slow = True
    a.send([MESSAGE] * 4)
    net.run(1.0)
    for member in (A, Address(9)):
        layer.release(member)
    assert a.env.counters["released"] == 0
    layer.release(B)
    layer.release(B)
    assert a.env.counters["released"] == 1
    assert layer.sent.low == 4
    assert layer.waits_for == ()


def test_a_released_member_where_nothing_arrives_leaves_room_in_flight() -> None:
    net, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    net.policy = lambda flight: () if flight.target == B else (0.001,)
    a.send([MESSAGE] * 4)
    net.run(0.2)  # Before it is passed over since nothing arrives there.
    assert space(a) < FLIGHT
    layer.release(B)
    assert space(a) == FLIGHT


def test_a_receipt_names_the_members_that_lack_what_was_sent_before_it() -> None:
    net, (a, b, c) = group()
    layer = a.get(NakAck4Layer)
    b.is_slow = True
    a.send([MESSAGE] * 2)
    receipt = layer.receipt()
    assert receipt() == [B, C]
    net.run(1.0)
    assert receipt() == [B]
    layer.release(B)
    assert receipt() == [], "a released member is not waited for"
    c.is_slow = True
    a.send([MESSAGE])
    net.run(1.0)
    assert receipt() == [], "later messages do not count"


def test_an_ack_beyond_what_was_sent_does_not_count() -> None:
    net, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    a.send([MESSAGE] * 2)
    layer.acked(B, 3)
    assert layer.acks[B] == 0
    layer.acked(B, 2)
    assert layer.acks[B] == 2
    net.settle()


def test_a_member_that_left_with_a_request_is_not_answered() -> None:
    net, (a, _, _) = group()
    layer = a.get(NakAck4Layer)
    a.send([MESSAGE] * 4)
    layer._repairs._queue.request(B, RangeSet([(1, 2)]), 0.0, 0.0)
    assert layer._repairs
    net.install(A, C)
    assert not layer._repairs
