"""What a receiver of fragments does not believe, and what becomes of messages that are not
whole."""

from random import Random

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.wire.fragments import Cutting
from ringcast.core.wire.frames import Data, Frame
from ringcast.core.wire.layout import FRAGMENT_HEADER_SIZE
from ringcast.layers.fragment.layer import Fragment, FragmentLayer
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Net, lose
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers
from tests.unit.layers.ladder import given as given_to

SIZE = 500
PIECE = SIZE - FRAGMENT_HEADER_SIZE


def trio(**settings: int | float) -> tuple[Net, list[Climber]]:
    fragment = Fragment(frag_size=SIZE, **settings)  # type: ignore[arg-type]
    return climbers(3, fragment, NakAck4(), Unicast())


def noise(size: int) -> bytes:
    return Random(0).randbytes(size)


def feed(member: Climber, sender: Address, fragments: list[Payload], first: int) -> None:
    """Hand fragments up to the layer, as if they had come from a sender."""
    layer = member.get(FragmentLayer)
    for seqno, fragment in enumerate(fragments, first):
        layer.up(Batch(sender, [fragment], len(fragment), first=seqno, flags=FRAGMENT))


def cut(size: int, message: int) -> list[Payload]:
    cutting, fragments = Cutting(bytes(size), message, SIZE), list[Payload]()
    while cutting.next < cutting.count:
        fragments += cutting.cut(1 << 20)
    return fragments


def test_a_length_that_is_only_promised_takes_no_memory() -> None:
    _, (_, b, _) = trio(max_message=1_000_000)
    layer = b.get(FragmentLayer)
    feed(b, A, cut(999_999, 1)[:1], 1)
    assert layer.incomplete_bytes == PIECE
    feed(b, C, cut(1_000_001, 1), 1)
    assert layer.incomplete_bytes == PIECE
    (skipped,) = given_to(b)
    assert isinstance(skipped, Skipped)
    assert (skipped.sender, skipped.last) == (C, len(cut(1_000_001, 1)))
    assert "1,000,001 bytes" in skipped.reason


def test_messages_in_the_making_are_bounded_in_number() -> None:
    _, (_, b, _) = trio(max_incomplete=2)
    layer = b.get(FragmentLayer)
    fragments = cut(3 * PIECE, 1)
    feed(b, A, fragments[:2], 1)
    feed(b, C, fragments[:2], 1)
    feed(b, D, fragments[:2], 1)
    assert layer.incomplete_bytes == 4 * PIECE
    feed(b, D, [fragments[2], *cut(2 * PIECE, 2)], 3)
    feed(b, A, fragments[2:], 3)
    feed(b, D, cut(2 * PIECE, 3), 6)
    whole = [event for event in given_to(b) if isinstance(event, Batch)]
    assert [(batch.sender, batch.first) for batch in whole] == [(A, 3), (D, 7)]


def test_messages_in_the_making_are_bounded_in_bytes() -> None:
    _, (_, b, _) = trio(max_message=4 * PIECE, max_incomplete_bytes=5 * PIECE)
    layer = b.get(FragmentLayer)
    fragments = cut(4 * PIECE, 1)
    feed(b, A, fragments[:3], 1)
    feed(b, C, fragments, 1)
    feed(b, A, fragments[3:], 4)
    first, second = given_to(b)
    assert isinstance(first, Skipped)
    assert (first.sender, first.last) == (C, 4)
    assert isinstance(second, Batch)
    assert second.nbytes == 4 * PIECE
    assert layer.incomplete_bytes == 0


def test_messages_in_the_making_are_bounded_in_time_and_late_fragments_do_not_start_them_anew() -> (
    None
):
    net, (_, b, _) = trio(incomplete_timeout=3.0)
    layer = b.get(FragmentLayer)
    fragments = cut(4 * PIECE, 1)
    feed(b, A, fragments[:2], 1)
    net.run(2.0)
    feed(b, A, fragments[2:3], 3)
    net.run(2.9)
    assert layer.incomplete_bytes == 3 * PIECE
    net.run(0.2)
    assert layer.incomplete_bytes == 0
    feed(b, A, fragments[3:], 4)
    (skipped,) = given_to(b)
    assert isinstance(skipped, Skipped)
    assert skipped.last == 4
    assert "3 seconds" in skipped.reason


def test_a_fragment_that_comes_twice_counts_once() -> None:
    _, (_, b, _) = trio()
    fragments = cut(3 * PIECE, 1)
    feed(b, A, fragments[:2], 1)
    feed(b, A, fragments[:2], 1)
    feed(b, A, fragments[2:], 3)
    (batch,) = given_to(b)
    assert isinstance(batch, Batch)
    assert batch.nbytes == 3 * PIECE
    assert b.env.counters["duplicate_fragments"] == 2


def test_bytes_that_are_no_fragment_are_dropped_and_counted() -> None:
    _, (_, b, _) = trio()
    feed(b, A, [b"short", bytes(100)], 1)
    assert given_to(b) == []
    assert b.env.counters["dropped_bad_fragment"] == 2


def test_a_message_with_a_hole_is_skipped_in_its_place_and_the_next_ones_are_delivered() -> None:
    net, (a, b, _) = trio()
    lost: list[int] = []

    def is_third(frame: Frame) -> bool:
        if isinstance(frame, Data) and frame.first == 3:
            lost.append(frame.first)
        return isinstance(frame, Data) and frame.first == 3

    net.policy = lose(is_third, 1_000_000)
    a.send([b"1", noise(4 * PIECE), b"3", noise(2 * PIECE)])
    net.run(0.5)
    assert b.payloads(A) == [b"1"]
    b.get(NakAck4Layer).give_up(A, 3, 3, "for this test")
    net.run(0.5)
    assert [len(p) for p in b.payloads(A)] == [1, 1, 2 * PIECE]
    ranges = [(skipped.first, skipped.last) for skipped in b.told(Skipped)]
    assert ranges == [(3, 3), (4, 5)]
    assert lost


def test_a_hole_that_takes_the_end_of_a_message_ends_it() -> None:
    _, (_, b, _) = trio()
    feed(b, A, cut(3 * PIECE, 1)[:2], 1)
    b.get(FragmentLayer).up(Batch(A, [b"next"], 4, first=4))
    (batch,) = given_to(b)
    assert isinstance(batch, Batch)
    assert batch.payloads == [b"next"]
    assert b.get(FragmentLayer).incomplete_bytes == 0


def test_a_hole_frees_what_came_before_it_though_nothing_more_comes() -> None:
    net, (a, b, _) = trio()
    net.policy = lose(lambda frame: isinstance(frame, Data) and frame.first >= 3, 1_000_000)
    a.send([noise(4 * PIECE)])
    net.run(0.5)
    assert b.get(FragmentLayer).incomplete_bytes == 2 * PIECE
    b.get(NakAck4Layer).give_up(A, 3, 4, "for this test")
    assert b.get(FragmentLayer).incomplete_bytes == 0
    net.run(0.5)
    assert b.told(Skipped) == [Skipped(A, 3, 4, "for this test")]


def test_a_broken_message_to_one_member_leaves_the_groups_marks_alone() -> None:
    _, (_, b, _) = trio()
    layer = b.get(FragmentLayer)
    for seqno, fragment in enumerate(cut(3 * PIECE, 1)[1:], 5):
        layer.up(Batch(A, [fragment], len(fragment), dest=B, first=seqno, flags=FRAGMENT))
    (skipped,) = given_to(b)
    assert isinstance(skipped, Skipped)
    assert skipped.direct
    assert b.get(NakAck4Layer).windows[A].delivered == 0
