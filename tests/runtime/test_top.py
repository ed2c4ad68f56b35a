"""`ringcast top` in a terminal: it joins a group that is stuck, and obeys its keys there."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringcast import Closed, sync
from tests.runtime.command import environment, run
from tests.runtime.support import SOON, await_view, group_name, multicast, running


class Terminal:
    """A command in a terminal of its own, 200 columns wide."""

    def __init__(self, home: Path, *words: str) -> None:
        self._end, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ringcast.cli.main", *words],
            stdin=other,
            stdout=other,
            stderr=other,
            env={**environment(home), "COLUMNS": "200", "LINES": "60", "NO_COLOR": "1"},
        )
        os.close(other)

    def press(self, key: str) -> None:
        os.write(self._end, key.encode())

    def show(self, text: str) -> str:
        """Read until a screen has this in it, and return all that was read."""
        until, seen = time.monotonic() + SOON, ""
        while text not in seen:
            ready, _, _ = select.select([self._end], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} was not shown, but: {seen}"
            seen += os.read(self._end, 65_536).decode(errors="replace")
        return seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait(SOON)
        os.close(self._end)


@contextmanager
def stuck_group() -> Iterator[str]:
    """A group whose members take nothing, while ann sends until its window is full."""
    name = group_name()
    with (
        sync.join(name, multicast(), name="ann") as ann,
        sync.join(name, multicast(), name="bob"),
    ):
        await_view(ann, 2)

        def flood() -> None:
            try:
                while True:
                    ann.send_many([b"x" * 1_000] * 1_000)
            except Closed:
                pass  # The test is over.

        with running(flood):
            yield name
            ann.close()


def test_a_stuck_group_is_joined_shown_frozen_sorted_and_explained(tmp_path: Path) -> None:
    (tmp_path / "stack.toml").write_text(multicast().to_toml())
    stack = ("--spec", str(tmp_path / "stack.toml"))
    with stuck_group() as group:
        terminal = Terminal(tmp_path, "top", group, *stack, "--interval", "0.2", "--name", "eye")
        try:
            screen = terminal.show("for ann, bob")
            assert "eye joined" in screen
            terminal.press("\x1b[B")  # An arrow key: one key without a meaning, not three.
            terminal.process.send_signal(signal.SIGTSTP)  # A stopped member would block the group.
            terminal.press("s")
            terminal.show("sorted by name")
            terminal.press("n")
            terminal.show("messages are 100 % of its window")
            terminal.press("h")
            terminal.show("messages it had to ask for")
            terminal.press("f")
            terminal.show("FROZEN at")
            terminal.press("q")
            assert terminal.process.wait(SOON) == 0
        finally:
            terminal.close()
        status, out, _ = run(tmp_path, "top", group, *stack, "--count", "1", "--interval", "1")
        assert status == 0
        assert "for ann, bob" in out


def test_a_terminated_top_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "top", group_name())
    try:
        screen = terminal.show("views, the latest first")
        assert "ALONE    no other member of" in screen
        terminal.process.terminate()
        terminal.show("\x1b[?25h")
        assert terminal.process.wait(SOON) == 130
    finally:
        terminal.close()
