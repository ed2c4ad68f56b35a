"""The path MTU by itself: what is probed when, and what follows from the answers."""

from collections.abc import Callable
from random import Random

import pytest

from ringcast.control.path_mtu import (
    CHECK_SECONDS,
    CONFIRM_ANSWERS,
    ROUNDS_MAX,
    ROUNDS_SMALLER,
    PathMtu,
    PathMtuPart,
)
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import DatagramsResized, Notice
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack.datagram_size import BASE_SIZE, DatagramSize
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation
from ringcast.core.stack.ports import Packer, Ports, Sizing
from ringcast.core.wire.frames import PathProbe, PathReply
from ringcast.core.wire.outbox import Datagram, Outbox
from ringcast.errors import ConfigError

A, B, C = Address(1), Address(2), Address(3)


class Bench:
    """The part between a wire and a network that this class plays."""

    group = 0

    def __init__(self, size: int = 8_972, is_given: bool = False) -> None:
        self.env = Env(Peer(A, "a", "a"), Random(1))
        self.env.datagram_size = DatagramSize(size, is_given)
        self.told: list[DatagramsResized] = []
        self.env.listener = self._listener
        self.watcher: Callable[[int], None] | None = None
        self.limits = {B: size, C: size}
        self.silent: set[Address] = set()
        ports = Ports()
        ports.offer(Sizing, self)
        ports.offer(Packer, self)
        self.part = PathMtuPart(self.env, PathMtu())
        self.part.connect(ports)
        self.install(A, B, C)

    def _listener(self, event: Notice) -> None:
        assert isinstance(event, DatagramsResized)
        self.told.append(event)

    def pack(self, out: Outbox) -> list[Datagram]:
        raise NotImplementedError

    def resize(self) -> bool:
        raise NotImplementedError

    def watch(self, watcher: Callable[[int], None]) -> None:
        self.watcher = watcher

    def bound_path(self, size: int | None, is_refused: bool = False) -> None:
        self.env.datagram_size.path, self.env.datagram_size.is_refused = size, is_refused

    def install(self, *members: Address) -> None:
        view = View(ViewId(1, A), tuple(Peer(m, "m", "m") for m in members))
        self.part.on_view(Installation(view, None, dict.fromkeys(members, 0), members, ()))

    def send_large(self) -> None:
        assert self.watcher is not None
        watcher, self.watcher = self.watcher, None
        watcher(self.size)

    def run(self, seconds: float) -> list[PathProbe]:
        """Let time pass and the others answer; the probes that were sent."""
        probes: list[PathProbe] = []
        until = self.env.now + seconds
        while True:
            probes += self._exchange()
            if self.env.timers.deadline > until:
                break
            self.env.now = max(self.env.now, self.env.timers.deadline)
            due = self.env.timers.pop_due(self.env.now)
            assert due is not None
            self.part.on_timer(due[1])
        self.env.now = until
        return probes

    def _exchange(self) -> list[PathProbe]:
        frames, self.env.out.frames = self.env.out.frames, []
        probes = [frame for _, frame in frames if isinstance(frame, PathProbe)]
        for probe in probes:
            for member, limit in self.limits.items():
                if probe.size <= limit and member not in self.silent:
                    self.part.on_frame(PathReply(probe.number, probe.size), member)
        return probes

    @property
    def size(self) -> int:
        return self.env.datagram_size.size


def test_the_first_large_datagram_is_followed_by_one_probe() -> None:
    bench = Bench()
    assert bench.run(9.0) == []
    bench.send_large()
    assert [probe.size for probe in bench.run(9.0)] == [8_972]
    bench.send_large()
    assert bench.run(9.0) == []
    assert bench.told == []


def test_messages_that_are_sent_again_cause_a_probe() -> None:
    bench = Bench()
    bench.send_large()
    bench.run(9.0)
    bench.env.counters["resent"] += 1
    bench.send_large()
    assert bench.run(CHECK_SECONDS / 2) == []
    assert [probe.size for probe in bench.run(CHECK_SECONDS)] == [8_972]


def test_a_black_hole_lowers_the_size_and_is_told_once() -> None:
    bench = Bench()
    bench.limits[C] = 1_472
    bench.send_large()
    probes = bench.run(20.0)
    first = [probe.size for probe in probes[: 2 * CONFIRM_ANSWERS + 1]]
    assert first == [8_972, *[BASE_SIZE, 8_972] * CONFIRM_ANSWERS]
    assert bench.size == 1_472
    assert bench.told == [DatagramsResized(1_472, 8_972, "probe", (C,))]


@pytest.mark.parametrize("limit", [512, 600, 1_000, 1_199, 1_200, 1_201, 2_000, 8_971])
def test_the_largest_size_that_arrives_is_found(limit: int) -> None:
    bench = Bench()
    bench.limits[B] = limit
    bench.send_large()
    bench.run(30.0)
    assert limit - 16 <= bench.size <= limit


def test_a_member_that_answers_nothing_says_nothing_about_the_size() -> None:
    bench = Bench()
    bench.silent = {B}
    bench.send_large()
    probes = bench.run(30.0)
    assert len(probes) == 2 * ROUNDS_MAX - 1
    assert [probe.size for probe in probes[2 * ROUNDS_SMALLER - 1 :: 2]] == [0] * ROUNDS_SMALLER
    assert bench.size == 8_972


def test_a_suspected_member_is_not_waited_for() -> None:
    bench = Bench()
    bench.silent = {B}
    bench.part.on_suspect(B, True)
    bench.send_large()
    assert len(bench.run(9.0)) == 1


def test_the_size_is_raised_after_a_time() -> None:
    bench = Bench()
    bench.limits[C] = 1_400
    bench.send_large()
    bench.run(20.0)
    bench.limits[C] = 8_972
    bench.run(60.0)
    assert bench.size == 8_972
    assert [event.size for event in bench.told][1:] == [8_972]
    assert bench.env.counters["path_raised"] == 1


def test_the_size_is_raised_when_the_member_behind_the_path_leaves() -> None:
    bench = Bench()
    bench.limits[C] = 1_400
    bench.send_large()
    bench.run(20.0)
    del bench.limits[C]
    bench.install(A, B)
    bench.run(1.0)
    assert bench.size == 8_972


def test_an_interface_that_refuses_large_datagrams_is_believed_at_once() -> None:
    bench = Bench(1_472)
    bench.part.shrunk(1_272)
    assert bench.told == [DatagramsResized(1_272, 1_472, "interface", ())]
    bench.run(70.0)
    assert bench.size == 1_472


def test_a_number_of_the_user_is_never_probed() -> None:
    bench = Bench(1_472, is_given=True)
    assert bench.watcher is None
    assert bench.run(100.0) == []


def test_probes_of_members_are_answered_and_others_are_not() -> None:
    bench = Bench()
    bench.part.on_frame(PathProbe(7, 1_000, bytes(900)), B)
    bench.part.on_frame(PathProbe(8, 1_000, bytes(900)), Address(99))
    assert bench.env.out.frames == [(B, PathReply(7, 1_000))]


def test_answers_that_were_not_asked_for_change_nothing() -> None:
    bench = Bench()
    bench.part.on_frame(PathReply(7, 1_000), B)
    bench.send_large()
    bench.limits.clear()
    bench.run(0.01)
    bench.part.on_frame(PathReply(99, 8_972), B)
    bench.part.on_frame(PathReply(1, 8_972), Address(99))
    assert len(bench.run(1.0)) > 1


def test_a_time_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="raise_after is 0"):
        PathMtu(raise_after=0)
