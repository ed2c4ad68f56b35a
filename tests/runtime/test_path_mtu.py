"""Datagrams fit the path on a real bridge: different MTUs, one that shrinks, and a black hole."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from ringcast_bench.net.bridge import Bridge, address, why_not
from tests.runtime.support import ROOT, group_name
from tests.runtime.waiting import wait_until

COUNT = 3_000
State = dict[str, object]


@pytest.fixture(autouse=True)
def _network_can_be_built() -> None:
    missing = why_not()
    if missing:
        pytest.skip(f"no bridge of namespaces can be built here: {missing}")


class Members:
    """One process per member of the bridge, all in one group."""

    def __init__(self, bridge: Bridge, count: int) -> None:
        group = group_name()
        self._processes = [
            subprocess.Popen(
                [
                    *(*bridge.enter(number), sys.executable, "-m", "tests.runtime.path_member"),
                    *("abc"[number], group, address(number)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for number in range(count)
        ]
        wait_until(lambda: all(self.ask(n)["members"] == count for n in range(count)))

    def ask(self, number: int, command: str = "state") -> State:
        """What a member answers to a command."""
        process = self._processes[number]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{command}\n")
        process.stdin.flush()
        state: State = json.loads(process.stdout.readline())
        return state

    def counters(self, number: int) -> dict[str, int]:
        counters = self.ask(number)["counters"]
        assert isinstance(counters, dict)
        return counters

    def said(self, number: int) -> list[str]:
        """The sentences about datagrams that a member has logged."""
        said = self.ask(number)["said"]
        assert isinstance(said, list)
        return said

    def size(self, number: int) -> int:
        size = self.ask(number)["datagram_bytes"]
        assert isinstance(size, int)
        return size

    def exchange(self, total: int) -> None:
        """The first one sends; all have this many messages in the end."""
        self.ask(0, f"send {COUNT}")
        others = range(len(self._processes))
        wait_until(lambda: all(self.ask(n)["got"] == total for n in others))

    def leave(self, number: int) -> None:
        process = self._processes.pop(number)
        process.communicate(timeout=30)

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@contextmanager
def members(mtus: Sequence[int], offload: bool = True) -> Iterator[tuple[Bridge, Members]]:
    with Bridge(mtus) as bridge:
        if not offload:
            bridge.switch_offload_off()
        group = Members(bridge, len(mtus))
        try:
            yield bridge, group
        finally:
            group.kill()


def test_members_with_mtus_of_1500_and_9000_are_in_one_group() -> None:
    with members([9_000, 9_000, 1_500]) as (_, group):
        assert [group.size(n) for n in range(3)] == [1_472] * 3
        group.exchange(COUNT)
        assert group.counters(0).get("resent", 0) == 0
        group.leave(2)
        wait_until(lambda: group.size(0) == 8_972)
        assert "the least of what the members take" in group.said(0)[0]


def test_an_mtu_that_shrinks_while_the_group_runs_is_followed() -> None:
    with members([1_500, 1_500, 1_500]) as (bridge, group):
        group.exchange(COUNT)
        bridge.set_mtu(0, 1_300)
        group.exchange(2 * COUNT)
        assert [group.size(n) for n in range(3)] == [1_272, 1_472, 1_472]
        (sentence,) = group.said(0)
        assert "up to 1,272 bytes now, what fits a packet of the interface" in sentence


def test_a_path_that_swallows_large_datagrams_is_found() -> None:
    with members([9_000, 9_000, 9_000], offload=False) as (bridge, group):
        group.exchange(COUNT)
        assert group.size(0) == 8_972
        bridge.swallow(1, 4_000)
        group.exchange(2 * COUNT)
        wait_until(lambda: bool(group.said(0)))
        (sentence,) = group.said(0)
        assert "those of 8,972 bytes do not arrive at b, smaller ones do" in sentence
        assert 3_956 <= group.size(0) <= 3_972
        group.exchange(3 * COUNT)


def test_a_member_that_the_sender_cannot_reach_gets_the_messages_from_another() -> None:
    with members([1_500, 1_500, 1_500], offload=False) as (bridge, group):
        group.exchange(COUNT)
        bridge.swallow(2, 400, source=0)
        group.exchange(2 * COUNT)
        assert group.counters(1)["resent"] > 0
