"""Fragmentation: large messages arrive whole, in their place, and never cost more than their
bounds."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.core.model.batch import CALL, Batch, Payload
from ringcast.core.model.events import Progress, Undelivered
from ringcast.core.wire.layout import DATA_SIZE, FRAGMENT_HEADER_SIZE, HEADER_SIZE
from ringcast.errors import ConfigError
from ringcast.layers.fragment.layer import Fragment, FragmentLayer
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from ringcast.layers.unicast.layer import UnicastLayer
from ringcast.sim.engine.placement import PlainBuffer
from tests.unit.harness import Net, bad_network
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers
from tests.unit.layers.ladder import given as given_to

MTU = 1_000
SIZE = MTU - HEADER_SIZE - DATA_SIZE - 4
PIECE = SIZE - FRAGMENT_HEADER_SIZE


def trio(**settings: int | float) -> tuple[Net, list[Climber]]:
    return climbers(3, Fragment(**settings), NakAck4(), Unicast())  # type: ignore[arg-type]


def noise(size: int, seed: int = 0) -> bytes:
    return Random(seed).randbytes(size)


# --- the way of a message ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, SIZE, SIZE + 1, 2 * PIECE, 2 * PIECE + 1, 50_000])
def test_a_message_of_any_size_arrives_as_it_was_sent(size: int) -> None:
    net, (a, b, c) = trio()
    message = noise(size)
    a.send([message])
    net.settle()
    assert a.payloads(A) == b.payloads(A) == c.payloads(A) == [message]


def test_small_large_small_arrive_in_that_order_and_the_large_one_in_its_last_fragments_place() -> (
    None
):
    net, (a, b, _) = trio()
    a.send([b"1", noise(3 * PIECE), b"3"])
    net.settle()
    places = [(seqno, len(payload)) for _, _, seqno, payload in b.messages]
    assert places == [(1, 1), (4, 3 * PIECE), (5, 1)]
    assert a.messages == b.messages


def test_a_run_of_small_messages_passes_through_untouched() -> None:
    _, (a, b, _) = trio()
    layer = b.get(FragmentLayer)
    batch = Batch(A, [b"x"] * 3, 3, first=1)
    layer.up(batch)
    (given,) = given_to(b)
    assert isinstance(given, Batch)
    assert (given.first, given.payloads) == (1, batch.payloads)
    payloads: list[Payload] = [b"y"] * 100
    a.top.down(Batch(A, payloads, 100))
    assert a.get(NakAck4Layer).sent.high == 100


def test_own_messages_come_back_as_the_very_object() -> None:
    _, (a, _, _) = trio()
    message = noise(10 * PIECE)
    a.top.down(Batch(A, [message], len(message)))
    (batch,) = given_to(a)
    assert isinstance(batch, Batch)
    assert batch.payloads[0] is message
    assert (batch.first, batch.flags) == (10, 0)


def test_messages_to_one_member_are_cut_as_well() -> None:
    net, (a, b, c) = trio()
    message = noise(20_000)
    a.send([message, b"end"], to=B)
    b.send([message], to=B)
    net.settle()
    assert b.payloads(A, B) == [message, b"end"]
    assert b.payloads(B, B) == [message]
    assert (a.messages, c.messages) == ([], [])


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5 * PIECE), max_size=12), st.integers(0, 1 << 30))
def test_any_mix_of_sizes_arrives_in_order_over_a_bad_network(sizes: list[int], seed: int) -> None:
    policy = bad_network(seed, loss=0.1, copies=0.1, spread=0.003)
    specs = (Fragment(frag_size=200), NakAck4(max_bytes=3_000), Unicast(max_bytes=3_000))
    net, (a, b, c) = climbers(3, *specs, policy=policy)
    messages: list[Payload] = [noise(size, seed + n) for n, size in enumerate(sizes)]
    a.send(messages)
    b.send(messages)
    a.send(messages, to=C)
    net.settle()
    for member in (a, b, c):
        assert member.payloads(A) == member.payloads(B) == messages
    assert c.payloads(A, C) == messages
    assert all(m.get(FragmentLayer).incomplete_bytes == 0 for m in (a, b, c))


# --- a message larger than the window ------------------------------------------------------------


def test_a_message_goes_through_a_small_window_piece_by_piece() -> None:
    specs = (Fragment(), NakAck4(max_bytes=5_000), Unicast())
    net, (a, b, _) = climbers(3, *specs)
    fragment, window = a.get(FragmentLayer), a.get(NakAck4Layer).sent
    message, most = noise(200_000), 0
    a.send([message, b"tail"])
    assert fragment.room(None) == (0, 0)
    assert a.waiting == 1  # The message is in, the tail waits for its turn.
    while b.payloads(A) != [message, b"tail"]:
        most = max(most, window.nbytes)
        net.step()
    assert most <= 5_000 + SIZE
    assert fragment.holding == 0
    assert fragment.room(None)[0] > 0


def test_while_a_message_for_the_group_waits_others_still_get_theirs() -> None:
    specs = (Fragment(), NakAck4(max_bytes=5_000), Unicast())
    net, (a, b, c) = climbers(3, *specs)
    c.is_slow = True
    a.send([noise(50_000)])
    a.send([noise(3_000), b"x"], to=B)
    net.run(1.0)
    assert a.get(FragmentLayer).holding == 0  # What the application has not taken is one message.
    assert [len(p) for p in b.payloads(A, B)] == [3_000, 1]
    a.send([noise(50_000)])
    net.run(1.0)
    assert a.get(FragmentLayer).holding == 1
    assert a.get(FragmentLayer).room(B)[0] > 0


def test_a_batch_that_comes_while_another_waits_keeps_its_place() -> None:
    specs = (Fragment(), NakAck4(max_bytes=2_000), Unicast())
    net, (a, b, _) = climbers(3, *specs)
    messages: list[Payload] = [noise(9_000), b"1", b"2", noise(1_500), b"3"]
    a.top.down(Batch(A, messages[:1], 9_000))
    a.top.down(Batch(A, messages[1:], 1_503))
    net.settle()
    assert b.payloads(A) == messages


# --- views ---------------------------------------------------------------------------------------


def test_a_message_that_a_newcomer_overtakes_is_begun_anew_and_reaches_it_whole() -> None:
    specs = (Fragment(), NakAck4(max_bytes=2_000), Unicast())
    net, (a, b, c, d) = climbers(4, *specs, installed=False)
    net.install(A, B, C)
    message = noise(30_000)
    a.send([b"before", message])
    net.run(0.002)
    assert 0 < b.get(FragmentLayer).incomplete_bytes < 30_000
    net.install(A, B, C, D)
    net.settle()
    assert d.payloads(A) == [message]
    assert a.payloads(A) == b.payloads(A) == c.payloads(A) == [b"before", message]
    assert a.env.counters["begun_anew"] == 1
    assert b.get(FragmentLayer).incomplete_bytes == 0


def test_a_message_goes_on_when_a_member_leaves() -> None:
    specs = (Fragment(), NakAck4(max_bytes=2_000), Unicast())
    net, (a, b, c) = climbers(3, *specs)
    message = noise(30_000)
    a.send([message])
    net.run(0.002)
    net.install(A, B)
    net.run(2.0)
    assert b.payloads(A) == [message]
    assert a.env.counters["begun_anew"] == 0
    assert c.payloads(A) == []


def test_what_has_come_of_a_message_goes_when_its_sender_does() -> None:
    specs = (Fragment(), NakAck4(max_bytes=2_000), Unicast(max_bytes=2_000))
    net, (a, b, _) = climbers(3, *specs)
    a.send([noise(30_000)])
    a.send([noise(30_000)], to=B)
    net.run(0.002)
    assert b.get(FragmentLayer).incomplete_bytes > 0
    net.install(B, C, on=[B, C])
    assert b.get(FragmentLayer).incomplete_bytes == 0
    assert b.env.counters["dropped_incomplete"] == 2
    assert b.messages == []


def test_what_waits_for_a_member_goes_when_it_leaves() -> None:
    specs = (Fragment(), NakAck4(), Unicast(max_bytes=2_000))
    net, (a, _, _) = climbers(3, *specs)
    a.send([noise(30_000)], to=C)
    assert a.get(FragmentLayer).holding == 1
    net.install(A, B, on=[A, B])
    assert a.get(FragmentLayer).holding == 0
    assert a.env.counters["dropped_backlog"] == 1
    assert [event.count for event in a.told(Undelivered)] == [1]


def test_the_sender_is_told_of_a_message_whose_fragments_so_far_were_all_acked() -> None:
    net, (a, *_) = climbers(3, Fragment(), NakAck4(), Unicast(max_bytes=2_000))
    a.send([noise(30_000)], to=C)
    window = a.get(UnicastLayer).outbound[C].window
    window.purge(window.high)  # Acked, and nothing else has left since.
    assert (a.get(FragmentLayer).holding, window.outstanding) == (1, 0)
    net.install(A, B, on=[A, B])
    assert [event.count for event in a.told(Undelivered)] == [1]


def test_messages_behind_a_large_one_are_counted_and_calls_are_not() -> None:
    _, (a, _, _) = climbers(3, Fragment(), NakAck4(), Unicast(max_bytes=2_000))
    layer = a.get(FragmentLayer)
    for payloads, flags in (([noise(30_000), b"1", b"2"], 0), ([b"call"], CALL)):
        layer.down(Batch(A, payloads, sum(map(len, payloads)), dest=C, flags=flags))
    assert layer.abandon(B) == 0
    assert layer.abandon(C) == 3
    assert layer.abandon(C) == 0


# --- progress and settings -----------------------------------------------------------------------


def test_both_sides_see_how_far_a_message_is() -> None:
    specs = (Fragment(progress_step=10_000), NakAck4(max_bytes=5_000), Unicast())
    net, (a, b, _) = climbers(3, *specs)
    a.send([noise(35_000)])
    a.send([noise(9_000)])
    net.settle()
    for told in (a.told(Progress), b.told(Progress)):
        assert {(p.sender, p.total) for p in told} == {(A, 35_000)}
        *steps, end = [p.done for p in told]
        assert end == 35_000
        assert len(steps) == 3
        assert all(later - sooner >= 10_000 for sooner, later in pairwise([0, *steps]))


def test_the_last_progress_comes_before_the_message() -> None:
    net, (a, b, _) = trio(progress_step=10_000)
    b.is_slow = a.is_slow = True
    a.send([noise(35_000)])
    net.run(0.5)
    for member in (a, b):
        *_, last, whole = given_to(member)
        assert isinstance(last, Progress)
        assert (last.done, last.total) == (35_000, 35_000)
        assert isinstance(whole, Batch)


def test_no_progress_is_reported_that_was_not_requested() -> None:
    net, (a, b, _) = trio(progress_step=0)
    a.send([noise(50_000)])
    net.settle()
    assert a.told(Progress) == b.told(Progress) == []


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"frag_size": 24}, "frag_size"),
        ({"frag_size": -1}, "frag_size"),
        ({"max_message": 0}, "max_message"),
        ({"max_incomplete": 0}, "max_incomplete"),
        ({"max_message": 100, "max_incomplete_bytes": 99}, "max_incomplete_bytes"),
        ({"incomplete_timeout": 0}, "incomplete_timeout"),
        ({"progress_step": -1}, "progress_step"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, int], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Fragment(**settings)


def test_a_fragment_has_to_fit_a_datagram() -> None:
    climbers(1, Fragment(frag_size=SIZE), NakAck4())
    with pytest.raises(ConfigError, match=f"at most {SIZE} bytes"):
        climbers(1, Fragment(frag_size=SIZE + 1), NakAck4())


# --- memory that is lent -------------------------------------------------------------------------


class Lent:
    """Memory for messages from 10,000 bytes on; says how often it was asked and tidied."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.tidied = 0

    def lend(self, size: int) -> PlainBuffer | None:
        self.sizes.append(size)
        return PlainBuffer(size) if size >= 10_000 else None

    def tidy(self) -> bool:
        self.tidied += 1
        return self.tidied < 3


def test_a_large_message_is_put_together_in_memory_that_is_lent() -> None:
    net, (a, b, _) = climbers(
        3, Fragment(), NakAck4(), Unicast(), policy=bad_network(1, 0.0, 0.0, 0.01)
    )
    b.env.buffers = lent = Lent()
    messages = [noise(50_000, 1), noise(5_000, 2), noise(SIZE, 3)]
    a.send(messages)
    net.run(2.0)
    assert [payload for *_, payload in b.messages] == messages
    assert lent.sizes[0] == 50_000


def test_memory_that_was_lent_is_tidied_until_there_is_none() -> None:
    net, (a, b, _) = climbers(
        3, Fragment(), NakAck4(), Unicast(), policy=bad_network(1, 0.0, 0.0, 0.01)
    )
    b.env.buffers = lent = Lent()
    a.send([noise(5_000)])
    net.run(10.0)
    assert lent.tidied == 0
    a.send([noise(50_000)])
    net.run(10.0)
    assert lent.tidied == 3
