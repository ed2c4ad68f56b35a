"""States in real groups when something goes wrong: providers fail, and processes are killed."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ringcast
from ringcast import sync
from ringcast.core.model.batch import Payload
from tests.runtime.serving import drain
from tests.runtime.support import (
    ROOT,
    SOON,
    come_back,
    group_name,
    memory,
    multicast,
    running,
    take_bytes,
)


def test_a_provider_that_fails_with_any_text_steers_no_terminal() -> None:
    def fail() -> bytes:
        raise OSError("\x1b[2J\nforged \udcff")

    name = group_name()
    with (
        sync.join(name, memory(), name="provider", on_state_request=fail) as a,
        running(lambda: drain(a)),
        sync.join(name, memory(), state=True) as b,
    ):
        with pytest.raises(ringcast.StateFailed, match="provider: OSError") as caught:
            b.state(timeout=SOON)
        assert str(caught.value).isprintable()
        a.leave()


@pytest.mark.parametrize("half_way", [False, True])
def test_a_provider_that_fails_is_named(half_way: bool) -> None:
    def fail() -> bytes:
        raise OSError("the disk is full")

    def fail_half_way() -> Iterator[bytes]:
        yield bytes(1_000_000)
        raise OSError("the disk is gone")

    name, give = group_name(), fail_half_way if half_way else fail
    with (
        sync.join(name, memory(), name="provider", on_state_request=give) as a,
        running(lambda: drain(a)),
        sync.join(name, memory(), state=True) as b,
    ):
        with pytest.raises(ringcast.StateFailed, match="provider: OSError: the disk is"):
            b.state(timeout=SOON)
        a.send(b"x")
        assert take_bytes(b, 1) == [b"x"], "it may go on without"
        come_back(b)
        a.leave()


def test_another_gives_it_when_one_fails() -> None:
    def fail() -> bytes:
        raise OSError("the disk is full")

    name = group_name()
    with (
        sync.join(name, memory(), on_state_request=fail) as a,
        sync.join(name, memory(), on_state_request=lambda: b"state") as b,
        running(lambda: drain(a)),
        running(lambda: drain(b)),
        sync.join(name, memory(), state=True) as c,
    ):
        assert c.state(timeout=SOON) == b"state"
        a.leave()
        b.leave()


def test_a_load_that_fails_can_be_tried_again() -> None:
    def fail(chunks: Iterator[Payload]) -> None:
        next(chunks)
        raise ValueError("not what was expected")

    name = group_name()
    with (
        sync.join(name, memory(), on_state_request=lambda: bytes(500_000)) as a,
        running(lambda: drain(a)),
        sync.join(name, memory(), state=True) as b,
    ):
        with pytest.raises(ValueError, match="not what was expected"):
            b.state(fail, timeout=SOON)
        assert b.state(timeout=SOON) == bytes(500_000)
        a.leave()


def test_closing_ends_the_wait() -> None:
    async def run() -> None:
        name = group_name()
        async with (
            ringcast.join(name, memory(), on_state_request=lambda: b"") as a,
            ringcast.join(name, memory(), state=True) as b,
        ):
            reading = asyncio.create_task(b.state(timeout=None))
            while len(a.view) < 2:
                await asyncio.sleep(0)
            await b.close()
            with pytest.raises(ringcast.Closed):
                await reading

    asyncio.run(run())


@contextmanager
def provider(group: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that gives a state without an end."""
    spec = tmp_path / "spec.toml"
    spec.write_text(multicast().to_toml())
    command = [sys.executable, str(ROOT / "tests/runtime/provider.py"), group, str(spec)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_a_killed_provider_is_replaced(tmp_path: Path) -> None:
    """The most senior member is killed in the middle; the next one gives its later state."""
    name, begun = group_name(), 0

    def load(chunks: Iterator[Payload]) -> bytes:
        nonlocal begun
        begun += 1
        first = next(chunks)
        if begun == 1:
            process.send_signal(signal.SIGKILL)
        return bytes(first[:100]) + bytes(sum(1 for _ in chunks))

    with (
        provider(name, tmp_path) as process,
        sync.join(name, multicast(), name="heir", on_state_request=lambda: b"heritage") as heir,
        running(lambda: drain(heir)),
        sync.join(name, multicast(), name="late", state=True, timeout=SOON) as late,
    ):
        assert late.state(load, timeout=30.0) == b"heritage"
        heir.send(b"after")
        assert take_bytes(late, 1) == [b"after"]
        come_back(late)
        heir.leave()
    assert begun == 2


def test_a_newcomer_gets_the_state_though_the_coordinator_was_just_killed(tmp_path: Path) -> None:
    """Before the crash is noticed, a newcomer hears another member and creates no group."""
    name = group_name()
    with (
        provider(name, tmp_path) as process,
        sync.join(name, multicast(), name="heir", on_state_request=lambda: b"heritage") as heir,
        running(lambda: drain(heir)),
    ):
        assert len(heir.view) == 2
        process.send_signal(signal.SIGKILL)
        with sync.join(name, multicast(), name="late", state=True, timeout=SOON) as late:
            assert late.state(timeout=30.0) == b"heritage"
            assert {peer.name for peer in late.view.peers} == {"heir", "late"}
        heir.leave()


def test_a_killed_newcomer_is_not_sent_to(tmp_path: Path) -> None:
    name, closed = group_name(), threading.Event()

    def give() -> Iterator[bytes]:
        try:
            while True:
                yield bytes(65_536)
        finally:
            closed.set()

    script = (
        "import sys; from pathlib import Path; from ringcast import StackSpec, sync\n"
        "spec = StackSpec.from_toml(Path(sys.argv[2]).read_text())\n"
        "group = sync.join(sys.argv[1], spec, name='late', state=True)\n"
        "group.state(lambda chunks: [print('got', flush=True) for chunk in chunks])\n"
    )
    spec = tmp_path / "spec.toml"
    spec.write_text(multicast().to_toml())
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with sync.join(name, multicast(), on_state_request=give) as a, running(lambda: drain(a)):
        command = [sys.executable, "-c", script, name, str(spec)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "got\n"
            process.kill()
        assert closed.wait(SOON)
        a.leave()


def test_two_newcomers_at_once() -> None:
    name = group_name()
    states: list[bytes | None] = []

    def join() -> None:
        with sync.join(name, multicast(), state=True, timeout=SOON) as late:
            states.append(late.state(timeout=SOON))

    with (
        sync.join(name, multicast(), on_state_request=lambda: bytes(5_000_000)) as a,
        running(lambda: drain(a)),
    ):
        with running(join), running(join), running(join):
            pass
        a.leave()
    assert [len(state or b"") for state in states] == [5_000_000] * 3
