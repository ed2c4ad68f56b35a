"""What a stranger's datagram costs a whole member, and what a stranger gets for it.

At most 32 times its size and 1 MB of memory, and 5 ms; at most three times its bytes in answers,
and these only to itself. All kinds of frames are drawn, with numbers and names that mean something
to the member: its view, its members, itself.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast import presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.wire.codec import FRAME_TYPES, encode, group_id
from ringcast.core.wire.frames import RUNS, Data, Discover, Frame, Join, UnicastData
from ringcast.core.wire.layout import FRAMES_MAX
from ringcast.sim import World
from tests.properties.test_hostile import (
    DATAGRAM_MAX,
    MEMORY_FACTOR,
    MEMORY_MAX,
    SECONDS_MAX,
    datagram_of,
    slowness,
)
from tests.seeds import quick_first

if TYPE_CHECKING:
    from _typeshed import TraceFunction

GROUP = group_id("sim")
STRANGER = Address(0xBAD)
ANSWER_FACTOR = 3
PRESETS = ("lan", "stable", "bulk")


def datagram(*content: Frame) -> bytes:
    return b"".join(encode(GROUP, STRANGER, content))


class Target:
    """A group of two whose first member is sent datagrams of a stranger."""

    def __init__(self, preset: str) -> None:
        self.world = World(1, presets.PRESETS[preset](), keep=False)
        self.member, self.other = self.world.join("a", "b")
        self.member.send([b"x" * 100] * 50)
        self.world.settle()
        assert self.member.view is not None
        self.view = self.member.view

    def receive(self, data: bytes) -> dict[object, int]:
        """Give a datagram to the member; bytes of the answers by target."""
        stack, answers = self.member.stack, dict[object, int]()
        stack.receive([data], self.world.now)
        stack.learned.clear()
        for sent in stack.drain():
            answers[sent.target] = answers.get(sent.target, 0) + sent.nbytes
        return answers

    def check(self, data: bytes) -> None:
        answers = self.receive(data)
        assert answers.keys() <= {STRANGER}, "an answer that goes to another process"
        assert sum(answers.values()) <= ANSWER_FACTOR * len(data)

    def expect_unharmed(self) -> None:
        world, (a, b) = self.world, (self.member, self.other)
        world.run(5.0)
        assert a.view == b.view == self.view
        before = len(b.delivered)
        a.send([b"still here"] * 10)
        world.settle()
        assert len(b.delivered) >= before
        assert world.check() == []


@pytest.fixture(params=quick_first(PRESETS, 1), scope="module")
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    target = Target(request.param)
    yield target
    target.expect_unharmed()


# Frames with content that means something --------------------------------------------------------


def values(annotation: object, view: View) -> st.SearchStrategy[Any]:
    """Values of a field, many of which the member knows."""
    known = [*view.members, STRANGER, Address(0), Address(2**64 - 1)]
    numbers = st.sampled_from([0, 1, 2, 50, 51, 5_000, 2**32, 2**62, 2**63 - 1])
    if annotation is int:
        return numbers
    if annotation is Address:
        return st.sampled_from(known)
    if annotation is str:
        return st.sampled_from(["", "a", "here:1", "n" * 500])
    if annotation is bytes:
        return st.binary(max_size=50)
    if annotation is ViewId:
        ids = [view.id, NO_VIEW, ViewId(1, STRANGER), ViewId(view.id.number + 1, view.coordinator)]
        return st.sampled_from([*ids, ViewId(2**62, STRANGER), ViewId(99, STRANGER)])
    if annotation is RangeSet:
        spans = [[(1, 1)], [(1, 2**62)], [(2 * n, 2 * n) for n in range(1, 1_000)]]
        return st.sampled_from(spans).map(RangeSet)
    if annotation is Peer:
        text, mtu = values(str, view), st.sampled_from([0, 1, 1_472, 2**63 - 1])
        return st.tuples(text, text, mtu).map(lambda drawn: Peer(STRANGER, *drawn))
    if annotation is View:
        peers = st.lists(st.sampled_from([*view.peers, Peer(STRANGER, "", "")]), unique=True)
        return st.builds(View, values(ViewId, view), peers.filter(bool).map(tuple))
    if get_origin(annotation) is tuple:
        return st.lists(values(get_args(annotation)[0], view), max_size=5).map(tuple)
    record = cast(Callable[..., Any], annotation)
    return st.builds(record, *(values(hint, view) for hint in get_type_hints(record).values()))


def frames(kind: type[Frame], view: View) -> st.SearchStrategy[Frame]:
    if kind is Data or kind is UnicastData:
        return runs(kind, view)
    hints = get_type_hints(kind)
    names: tuple[str, ...] = tuple(kind.__slots__)
    return st.builds(kind, *(values(hints[name], view) for name in names))


def runs(kind: type[Frame], view: View) -> st.SearchStrategy[Frame]:
    payloads = st.lists(st.binary(max_size=20), min_size=1, max_size=20)
    small = st.sampled_from([1, 2, 51, 5_000, 2**40])
    flags = st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64, 128, 255])

    def make(
        first: int, low: int, flag: int, content: list[bytes], where: tuple[Any, ...]
    ) -> Frame:
        return kind(*where, first, low, 0, flag, content, sum(map(len, content)))  # type: ignore[call-arg]

    where: st.SearchStrategy[tuple[Any, ...]] = st.tuples(small)
    if kind is Data:
        where = st.tuples(values(ViewId, view), small, values(Address, view))
    return st.builds(make, small, small, flags, payloads, where)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.parametrize("kind", list(FRAME_TYPES.values()), ids=lambda kind: kind.kind)
@given(data=st.data())
def test_answers_are_short_and_go_to_the_stranger(
    target: Target, kind: type[Frame], data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(frames(kind, target.view), min_size=1, max_size=4))
    target.check(datagram(*drawn))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_answers_to_frames_of_several_kinds_are_short(target: Target, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(FRAME_TYPES.values())), min_size=2, max_size=9))
    target.check(datagram(*(data.draw(frames(kind, target.view)) for kind in kinds)))


def test_many_questions_in_one_datagram_get_one_answer(target: Target) -> None:
    peer = Peer(STRANGER, "", "")
    for frame in (Discover(peer, NO_VIEW, 1), Discover(peer, ViewId(9, STRANGER), 1)):
        target.world.run(0.01)
        target.check(datagram(*[frame] * FRAMES_MAX))
        target.check(datagram(frame, Join(peer, "", 0)))


# What it costs -----------------------------------------------------------------------------------


def cost(target: Target, data: bytes) -> tuple[int, float]:
    """Bytes and seconds that a member takes for a datagram."""
    before = time.thread_time()
    target.receive(data)
    seconds = time.thread_time() - before
    gc.collect()
    tracemalloc.start()
    try:
        target.receive(data)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if seconds > SECONDS_MAX:
        begins = [time.thread_time()]
        for _ in range(3):
            target.receive(data)
            begins.append(time.thread_time())
        seconds = min(end - begin for begin, end in pairwise(begins))
    return memory, seconds


def check_cost(target: Target, data: bytes) -> None:
    memory, seconds = cost(target, data)
    assert memory <= MEMORY_FACTOR * len(data) + MEMORY_MAX
    assert seconds <= SECONDS_MAX or seconds <= SECONDS_MAX * slowness()


@pytest.mark.parametrize("items", [1, 2_000])
@pytest.mark.parametrize(
    "kind", [kind for kind in FRAME_TYPES.values() if kind not in RUNS], ids=lambda kind: kind.kind
)
def test_the_largest_control_frames(target: Target, kind: type[Frame], items: int) -> None:
    made = datagram_of(kind, items, datagram)
    if made is not None:
        check_cost(target, made)


@pytest.mark.parametrize("size", [0, 1, 5_000])
@pytest.mark.parametrize("is_pair", [False, True])
def test_the_largest_runs_of_a_hostile_sender_are_bounded(
    target: Target, size: int, is_pair: bool
) -> None:
    messages = (DATAGRAM_MAX - 200) // size if size else 65_536
    payloads = [bytes(size)] * messages
    view = ViewId(target.view.id.number + 1, target.view.coordinator)
    run: Frame = Data(view, 0, STRANGER, 1, 0, 0, 0, payloads, size * messages)
    if is_pair:
        run = UnicastData(7, 1, 0, 0, 0, payloads, size * messages)
    check_cost(target, datagram(run))


# In large groups ---------------------------------------------------------------------------------

SMALL, LARGE = 3, 40
LINES_MORE = 300
"""Lines that a datagram may cost more in the larger group: fewer than one per frame and member."""


@pytest.fixture(scope="module")
def groups() -> list[World]:
    """A group of a few members, and one of many."""
    worlds = [World(1, presets.lan(), keep=False) for _ in range(2)]
    for world, size in zip(worlds, (SMALL, LARGE), strict=True):
        world.join(*(f"m{number}" for number in range(size)))
        world.settle()
    return worlds


def lines(world: World, data: bytes) -> int:
    """Lines of code that the coordinator runs for a datagram."""
    stack, count = world.members["m0"].stack, 0
    assert stack.view is not None

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        stack.receive([data], world.now)
        stack.learned.clear()
        stack.drain()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "kind", [kind for kind in FRAME_TYPES.values() if kind not in RUNS], ids=lambda kind: kind.kind
)
def test_a_strangers_datagram_costs_no_more_in_a_larger_group(
    groups: list[World], kind: type[Frame]
) -> None:
    made = datagram_of(kind, 1, datagram)
    assert made is not None
    few, many = (lines(world, made) for world in groups)
    assert many <= few + LINES_MORE


@pytest.mark.parametrize("view", [NO_VIEW, ViewId(9, STRANGER)])
@pytest.mark.parametrize("direct", [0, 1])
def test_questions_of_a_stranger_cost_no_more_in_a_larger_group(
    groups: list[World], view: ViewId, direct: int
) -> None:
    question = Discover(Peer(STRANGER, "", "somewhere:7"), view, direct)
    few, many = (lines(world, datagram(*[question] * FRAMES_MAX)) for world in groups)
    assert few > FRAMES_MAX
    assert many <= few + LINES_MORE
