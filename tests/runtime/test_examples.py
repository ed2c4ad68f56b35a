"""The examples do what they say."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.runtime.support import ROOT, SOON, group_name


@contextmanager
def chat(room: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Somebody in a room."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(ROOT / "examples/chat.py"), room, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
            process.wait(SOON)
        finally:
            process.kill()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def expect(process: subprocess.Popen[str], line: str) -> None:
    """Read until this line; the end of the output fails the test."""
    assert process.stdout is not None
    heard = []
    while (printed := process.stdout.readline()) != line + "\n":
        heard.append(printed)
        assert printed, f"no {line!r} among {heard}"


def test_chat() -> None:
    room = group_name()
    with chat(room, "ann") as ann:
        expect(ann, "* ann is here")
        with chat(room, "bob") as bob:
            expect(ann, "* bob is here")
            expect(bob, "* bob is here")
            say(ann, "hello")
            expect(bob, "ann: hello")
            say(bob, "")
        expect(ann, "* bob has gone")
        say(ann, "")
    assert ann.returncode == bob.returncode == 0
