"""Members that can be asked on this machine, and by nobody else."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ringcast import Batch, ConfigError, sync
from ringcast.layers.multicast.nakack4 import NakAck4Layer
from ringcast.runtime.ops import status
from ringcast.runtime.ops.json_fields import map_in, number_in, texts_in
from ringcast.runtime.ops.metrics import render
from ringcast.runtime.ops.run_directory import run_directory
from ringcast.runtime.ops.status import running_members, serve_status
from ringcast.runtime.ops.status_text import overview
from tests.runtime.support import (
    SOON,
    group_name,
    members,
    memory,
    numbered,
    running,
    take,
    take_bytes,
)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run directory of the test's own; its name is short, as those of sockets have to be."""
    with TemporaryDirectory(prefix="rc-") as path:
        monkeypatch.setenv("XDG_RUNTIME_DIR", path)
        yield Path(path)


@pytest.fixture
def group() -> Iterator[sync.Group]:
    """A member that is alone."""
    with sync.join(group_name(), memory(), name="ann", timeout=SOON) as joined:
        yield joined


def test_a_member_that_can_be_asked(home: Path, group: sync.Group) -> None:
    assert running_members() == []
    with serve_status(group):
        (told,) = running_members()
        assert told["name"] == "ann"
        assert told["pid"] == os.getpid()
        assert told["members"] == ["ann"]
        assert told["peers"] == [
            {"address": str(group.me), "name": "ann", "endpoint": group.endpoint}
        ]
        assert running_members(str(told["group"])) == [told]
        assert running_members("another") == []
    assert running_members() == []
    assert list((home / "ringcast").iterdir()) == []


def test_the_directory_is_private(home: Path, group: sync.Group) -> None:
    with serve_status(group):
        assert (home / "ringcast").stat().st_mode & 0o777 == 0o700
    (home / "ringcast").chmod(0o755)
    with pytest.raises(ConfigError, match="only this user can enter"):
        serve_status(group)
    with pytest.raises(ConfigError, match="only this user can enter"):
        running_members()


def test_a_directory_that_is_a_link_is_refused(home: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "ringcast").symlink_to(home / "elsewhere")
    with pytest.raises(ConfigError, match="only this user can enter"):
        run_directory(create=True)


def test_without_a_runtime_directory_it_is_below_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert run_directory() == Path(f"/tmp/ringcast-{os.getuid()}")


def test_a_home_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "nowhere"))
    assert running_members() == []
    with pytest.raises(ConfigError, match="does not exist"):
        run_directory(create=True)


def test_a_name_too_long_for_a_socket(
    home: Path, monkeypatch: pytest.MonkeyPatch, group: sync.Group
) -> None:
    deep = home / ("x" * 120)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(ConfigError, match="short name"):
        serve_status(group)


def test_what_a_dead_process_left_is_removed(home: Path) -> None:
    path = run_directory(create=True) / "7-a.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    assert running_members() == []
    assert not path.exists()


def test_a_member_that_does_not_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "ASK_TIMEOUT", 0.05)
    path = run_directory(create=True) / "7-a.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stopped:
        stopped.bind(str(path))
        stopped.listen()
        assert running_members("any") == [{"pid": 7, "error": "no answer: timed out"}]


def test_a_client_that_asks_and_goes_away_does_no_harm(home: Path, group: sync.Group) -> None:
    with serve_status(group):
        (path,) = (home / "ringcast").iterdir()
        for _ in range(3):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as rude:
                rude.connect(str(path))
        assert len(running_members()) == 1


def test_the_status_says_which_member_blocks_a_send(home: Path) -> None:
    """One member takes nothing, so the other one's window stays full."""

    def take_own() -> None:
        take(sender, 100)

    with (
        members(2, "memory", capacity=16) as (sender, idle),
        serve_status(sender),
        running(lambda: sender.send_many(numbered("x", 100), timeout=SOON)),
        running(take_own),
    ):
        until = time.monotonic() + SOON
        while not (told := running_members()[0])["blocked_senders"]:
            assert time.monotonic() < until
        assert "m1" in texts_in(told, "waits_for")
        assert "waits for" in overview([told])
        assert "ringcast_waits_for{" in render(told)
        assert take_bytes(idle, 100) == numbered("x", 100)


def test_a_message_past_the_window_is_told_by_its_counter() -> None:
    with members(2, "memory", capacity=16) as (sender, receiver):
        parts = receiver._member.stack.parts
        window = next(p for p in parts if isinstance(p, NakAck4Layer)).windows[sender.me]
        window.put(Batch(sender.me, [b"x"] * 3, 3, first=window.high + 15))
        told = receiver.stats()
    assert number_in(map_in(told, "counters"), "dropped_past_window") == 1
    sample = next(line for line in render(told).splitlines() if "past_window_total{" in line)
    assert sample.startswith("ringcast_dropped_past_window_total{")
    assert sample.endswith(" 1")
    assert "  dropped: past_window 1" in overview([told]).splitlines()
