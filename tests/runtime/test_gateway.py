"""Gateways: one member sends for all processes of a machine, and says when everybody has it."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ringcast import Closed, ConfigError, LocalError, Timeout, TooLarge, sync
from ringcast.gateway import Client, Settings, client, connect
from ringcast.gateway.protocol import NUMBER, frame_of
from tests.runtime.support import (
    SOON,
    await_view,
    come_back,
    members,
    numbered,
    running,
    take_bytes,
    tcp,
)


@pytest.fixture(autouse=True)
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run directory of the test's own; gateways that still run at its end are killed."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    client._started.clear()
    yield home / "ringcast"
    for process in client._started:
        process.kill()
        process.wait(SOON)


@contextmanager
def receivers(count: int) -> Iterator[list[sync.Group]]:
    """Members that receive, over TCP."""
    with members(count, "tcp") as groups:
        yield groups


def settings_for(group: sync.Group, **changes: object) -> Settings:
    """A gateway to the group of this member."""
    spec = tcp(group.endpoint).to_toml()
    settings = Settings(group=group._member.group, spec=spec, timeout=SOON, idle=SOON)
    return replace(settings, **changes)  # type: ignore[arg-type]  # names and types as written


def taker(group: sync.Group, seen: list[bytes]) -> threading.Thread:
    """Takes all messages, until the group is closed."""

    def take_all() -> None:
        for message in group:
            seen.append(bytes(message.payload))

    thread = threading.Thread(target=take_all, daemon=True)
    thread.start()
    return thread


def test_many_clients_are_one_member_and_each_keeps_its_order() -> None:
    with receivers(2) as (one, other):
        settings, seen = settings_for(one), list[list[bytes]]([[], []])
        takers = [taker(group, into) for group, into in zip((one, other), seen, strict=True)]

        def work(name: str) -> None:
            with connect(settings) as gateway:
                for message in numbered(name, 300):
                    gateway.send([message])
                gateway.flush()
                for into in seen:  # Everybody has them all when the flush is over.
                    assert [m for m in into if m.startswith(name.encode())] == numbered(name, 300)

        with running(lambda: work("a")), running(lambda: work("b")), running(lambda: work("c")):
            pass
        assert sorted(seen[0]) == sorted(seen[1])
        assert len(seen[0]) == 900
        assert sum(peer.name.startswith("gateway@") for peer in one.view.peers) == 1
        assert len(one.view) == 3
        for group in (one, other):
            group.close()
        for thread in takers:
            thread.join(SOON)


def test_it_leaves_in_order_when_nobody_comes_and_leaves_nothing_behind(place: Path) -> None:
    with receivers(1) as (group,):
        settings = settings_for(group, idle=0.3)
        connect(settings).close()
        await_view(group, 2)
        connect(settings).close()
        assert len(client._started) == 1
        await_view(group, 1)
        assert client._started[0].wait(SOON) == 0
        assert list(place.iterdir()) == []
        with running(lambda: await_view(group, 2)), connect(settings):  # The next one starts anew.
            pass


def test_delivered_means_taken_by_the_application() -> None:
    with receivers(1) as (group,), connect(settings_for(group, timeout=0.5)) as gateway:
        gateway.send(numbered("m", 3))
        assert take_bytes(group, 3) == numbered("m", 3)
        with pytest.raises(Timeout, match=r"for 0\.5 seconds: waited for m0; see why"):
            gateway.flush()
        come_back(group)


def test_a_slow_receiver_is_waited_for_as_long_as_it_takes_something() -> None:
    """It takes one message at a time, all of them together far above the timeout."""
    with members(1, "tcp", capacity=4) as (group,):
        stack = tcp(group.endpoint).replace(capacity=4)
        settings = settings_for(group, spec=stack.to_toml(), timeout=2.0)
        seen: list[bytes] = []
        nap = threading.Event()

        def take_slowly() -> None:
            while len(seen) < 24:
                seen.extend(take_bytes(group, 1))
                nap.wait(0.1)
            come_back(group)

        with connect(settings) as one, connect(settings) as other, running(take_slowly):
            one.send(numbered("a", 12))
            other.send(numbered("b", 12))
            with running(one.flush), running(other.flush):
                pass
        assert sorted(seen) == sorted(numbered("a", 12) + numbered("b", 12))


def test_a_group_that_is_not_there_is_a_sentence() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nobody = "{}:{}".format(*bound.getsockname())
        settings = Settings(group="g", spec=tcp(nobody).to_toml(), timeout=0.5)
        with pytest.raises(Timeout, match=rf'"g" was not joined within 0\.5 .* {nobody}'):
            connect(settings)
    assert client._started[0].wait(SOON) == 1


def test_a_stack_that_cannot_be_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match="there is no protocol Nonsense"):
        connect(Settings(group="g", spec="[Nonsense]\n"))


def test_a_directory_that_is_too_deep_is_a_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = home / ("x" * 90)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(ConfigError, match="too long a name: set XDG_RUNTIME_DIR"):
        connect(Settings(group="g", spec=""))


def test_messages_to_nobody_do_not_count_as_delivered() -> None:
    with receivers(2) as (one, other):
        settings = settings_for(one, min_receivers=2)
        with connect(settings) as gateway:
            await_view(one, 3)
            await_view(other, 3)
            other.close()
            await_view(one, 2)
            gateway.send([b"a"])
            assert take_bytes(one, 1) == [b"a"]
            come_back(one)
            with pytest.raises(LocalError, match="has 1 members that receive, and not 2, for a wh"):
                gateway.flush()
        with pytest.raises(Timeout, match="has 1 members that receive, and not 2, within 0"):
            connect(settings_for(one, min_receivers=2, timeout=0.2))


def test_a_message_that_is_too_large_is_a_sentence() -> None:
    with members(1, "tcp", max_message=1_000) as (group,):
        stack = tcp(group.endpoint).replace("Fragment", max_message=1_000)
        settings = settings_for(group, spec=stack.to_toml())
        with connect(settings) as gateway:
            gateway.send([b"x" * 1_001])
            with pytest.raises(TooLarge, match="a message of 1,001 bytes is larger"):
                gateway.flush()


def test_a_client_that_dies_leaves_a_prefix() -> None:
    with receivers(1) as (group,):
        settings = settings_for(group)
        frame = frame_of(numbered("m", 4))
        died = connect(settings)
        died._connection.sendall(frame + frame[:-1])
        died.close()
        with connect(settings) as gateway:
            gateway.send([b"end"])
            taken = take_bytes(group, 5)
            taken.remove(b"end")  # Between two clients there is no order.
            assert taken == numbered("m", 4)
            come_back(group)
            gateway.flush()


def test_what_a_client_may_not_say_is_a_sentence() -> None:
    with receivers(1) as (group,), connect(settings_for(group)) as gateway:
        gateway._connection.sendall(NUMBER.pack(70_000))
        with pytest.raises(LocalError, match="speaks another language"):
            gateway.flush()


def test_a_gateway_that_is_killed_is_noticed_and_replaced() -> None:
    with receivers(1) as (group,):
        settings = settings_for(group)
        with connect(settings) as gateway:
            gateway.send([b"a"])
            assert take_bytes(group, 1) == [b"a"]
            os.kill(client._started[0].pid, signal.SIGKILL)
            with pytest.raises(Closed, match="the gateway has gone"):
                _say_for_ever(gateway)
        with connect(settings) as gateway:
            gateway.send([b"b"])
            assert take_bytes(group, 1) == [b"b"]
            come_back(group)
            gateway.flush()


def _say_for_ever(gateway: Client) -> None:
    while True:
        gateway.send([b""])
