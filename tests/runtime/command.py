"""The command line as a user has it: a process whose lines a test waits for."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.runtime.support import ROOT, SOON


class Command:
    """A command that runs; `out` and `err` are what it prints, line by line."""

    def __init__(self, home: Path, *words: str, wrapper: tuple[str, ...] = ()) -> None:
        self.words = words
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-m", "ringcast.cli.main", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(home),
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.out = _Lines(self._process.stdout)
        self.err = _Lines(self._process.stderr)

    def say(self, *lines: str) -> None:
        """Type these lines."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{line}\n" for line in lines))
        self._process.stdin.flush()

    def end_input(self) -> None:
        """There is nothing more to type."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def status(self) -> int:
        """The exit status, once it has ended."""
        return self._process.wait(SOON)

    def end(self) -> None:
        """Let nothing be left of it."""
        self._process.kill()
        self._process.wait(SOON)
        self.out.close()
        self.err.close()
        with suppress(BrokenPipeError):
            self.end_input()


def node(running: list[Command], home: Path, group: str, name: str, *words: str) -> Command:
    """A member that joins."""
    command = Command(home, "node", group, "--name", name, *words)
    running.append(command)
    return command


def endpoint(member: Command) -> str:
    """Where a member is, by the line that says that it has joined."""
    while " as " not in (line := member.err.hear("joined ")):
        pass  # A slow machine is told first that it has not joined yet.
    return line.split()[-1]


@contextmanager
def commands() -> Iterator[list[Command]]:
    """A list for commands that are running, none of which outlives it."""
    running: list[Command] = []
    try:
        yield running
    finally:
        for command in running:
            command.end()


def run(home: Path, *words: str, wrapper: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Run a command to its end: its exit status and what it printed."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-m", "ringcast.cli.main", *words],
        input="",
        capture_output=True,
        text=True,
        timeout=4 * SOON,
        env=environment(home),
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def environment(home: Path) -> dict[str, str]:
    """The environment of a command whose run directory is `home`."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_RUNTIME_DIR": str(home)}


class _Lines:
    """Lines as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._queue: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def hear(self, text: str) -> str:
        """The next line with this in it; those before it are passed over."""
        until, before = time.monotonic() + SOON, list[str]()
        while True:
            try:
                line = self._queue.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                raise AssertionError(f"no line with {text!r} came after {before}") from None
            if text in line:
                return line
            before.append(line)

    def rest(self) -> list[str]:
        """What is left, once the process has ended."""
        self._thread.join(SOON)
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]

    def close(self) -> None:
        """The process has ended."""
        self._thread.join(SOON)
        self._stream.close()

    def _read(self) -> None:
        for line in self._stream:
            self._queue.put(line.rstrip("\n"))
