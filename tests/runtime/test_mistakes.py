"""Mistakes of callers: each is told what is wrong, and the group goes on as if nothing was."""

import asyncio
import ctypes
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

import ringcast
from ringcast import ConfigError, LocalError, NotMember, Timeout, presets, sync
from tests.runtime.support import SOON, SPECS, group_name, memory

NAN = float("nan")

MISTAKES: list[Callable[[sync.Group], object]] = [
    lambda group: group.send("text"),  # type: ignore[arg-type]
    lambda group: group.send(b"x", to=[group.me]),  # type: ignore[arg-type]
    lambda group: group.send(b"x", to="ann"),  # type: ignore[arg-type]
    lambda group: group.send_many([b"x", 5]),  # type: ignore[list-item]
    lambda group: group.call(b"x", to=[[group.me]]),  # type: ignore[list-item]
    lambda group: group.call(b"x", to=7.5),  # type: ignore[arg-type]
    lambda group: group.call(b"x", timeout=NAN),
    lambda group: group.call(b"x", wait="some"),
    lambda group: group.receive(timeout=NAN),
    lambda group: group.take(timeout="soon"),  # type: ignore[arg-type]
    lambda group: group.leave(timeout=NAN),
    lambda group: group.on_call(5),  # type: ignore[arg-type]
    lambda group: group.state(),
    lambda group: group.add_figures(5),  # type: ignore[arg-type]
    lambda group: group.send_many(5),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_does_no_harm(mistake: Callable[[sync.Group], object]) -> None:
    with sync.join(group_name(), memory()) as group:
        with pytest.raises((TypeError, LocalError, NotMember)):
            mistake(group)
        assert group.closed is None
        group.send(b"still here", timeout=SOON)
        assert group.receive(timeout=SOON).payload == b"still here"


def test_nor_does_one_in_an_event_loop() -> None:
    async def run() -> None:
        async with ringcast.join(group_name(), memory()) as group:
            wrong: object
            for wrong in ([group.me], "ann", {}):
                with pytest.raises(TypeError, match="one member"):
                    await group.send(b"x", to=wrong)  # type: ignore[arg-type]
            for wait in (group.receive, group.take, group.leave):
                with pytest.raises(LocalError, match="timeout is nan"):
                    await wait(timeout=NAN)
            await group.send(b"still here", timeout=SOON)
            assert (await group.receive(timeout=SOON)).payload == b"still here"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"spec": [1] * 10_000}, r"spec is \[1, .{,100}: give a StackSpec"),
        ({"key": "abc"}, "key is of type str: give 32 bytes"),
        ({"key_file": 3}, "key_file is 3: give the path"),
        ({"key_file": ""}, "key_file is empty"),
        ({"metrics": True}, "metrics is True: give a port"),
        ({"observer": 3}, "observer is 3: give a listener"),
        (
            {"spec": presets.tcp(seeds=["10.0.0.1"])},
            '"10.0.0.1" is not an endpoint: give "host:port"',
        ),
    ],
)
def test_a_join_with_a_wrong_argument_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        sync.join(group_name(), **({"spec": memory()} | wrong))


def test_a_join_that_is_not_awaited_says_so() -> None:
    joining = ringcast.join(group_name(), memory())
    with pytest.raises(
        AttributeError, match=r"not awaited yet, and has no send: write `async with"
    ):
        joining.send(b"x")  # type: ignore[attr-defined]


def test_a_timeout_in_the_past_looks_once() -> None:
    with sync.join(group_name(), memory()) as group:
        group.send(b"x", timeout=-1.0)
        assert group.receive(timeout=SOON).payload == b"x"
        with pytest.raises(Timeout, match="within 0 seconds"):
            group.receive(timeout=-1.0)
        group.flush(timeout=0.0)
        assert group.stability(timeout=-1.0) == {group.me: 1}


def test_a_timeout_beyond_all_clocks_is_none() -> None:
    with sync.join(group_name(), memory(), timeout=1e30) as group:
        group.send(b"x", timeout=1e30)
        assert group.receive(timeout=1e30).payload == b"x"
        group.leave(timeout=1e30)


def test_memory_of_any_make_can_be_sent() -> None:
    numbers = (ctypes.c_int32 * 3)(1, 2, 3)
    views = [memoryview(numbers), memoryview(b"abcdef")[::2], memoryview(b"abc")[::-1]]
    with sync.join(group_name(), memory()) as group:
        group.send_many(views, timeout=SOON)
        got = [bytes(group.receive(timeout=SOON).payload) for _ in views]
    assert got == [bytes(numbers), b"ace", b"cba"]


@pytest.mark.parametrize("kind", ["memory", "multicast", "tcp"])
@pytest.mark.parametrize("left", [0, 1])
def test_without_descriptors_there_is_no_member_and_nothing_is_left_open(
    kind: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bells = [os.eventfd(0) for _ in range(left)]

    def eventfd(*_: int) -> int:
        if not bells:
            raise OSError(errno.EMFILE, "Too many open files")
        return bells.pop()

    monkeypatch.setattr(os, "eventfd", eventfd)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError, match=r"Too many open files.*ulimit"):
        sync.join(group_name(), SPECS[kind](None))
    assert len(os.listdir("/proc/self/fd")) == before - left


def test_a_join_that_waits_says_for_whom(caplog: pytest.LogCaptureFixture) -> None:
    seed = presets.tcp(seeds=["127.0.0.1:9"])
    with pytest.raises(Timeout):
        sync.join(group_name(), seed, timeout=1.0)

    async def join() -> None:
        with pytest.raises(Timeout):
            await ringcast.join(group_name(), seed, timeout=1.0)

    asyncio.run(join())
    told = [r.getMessage() for r in caplog.records if r.name == "ringcast.join"]
    assert len(told) == 2, "once per join"
    for text in told:
        assert "not joined yet: tried seeds 127.0.0.1:9" in text
        assert "no process listens there" in text
