"""The examples do what they say."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.support import ROOT, SOON, group_name


@contextmanager
def example(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """An example that runs; it has to come to its end by itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
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


def expect(process: subprocess.Popen[str], *lines: str) -> None:
    """Read until all these lines were there; the end of the output fails the test."""
    assert process.stdout is not None
    heard, missing = list[str](), set(lines)
    while missing:
        printed = process.stdout.readline()
        heard.append(printed)
        missing.discard(printed.rstrip("\n"))
        assert printed, f"no {missing} among {heard}"


def test_chat() -> None:
    room = group_name()
    with example("chat.py", room, "ann") as ann:
        expect(ann, "* ann is here")
        with example("chat.py", room, "bob") as bob:
            expect(ann, "* bob is here")
            expect(bob, "* bob is here")
            say(ann, "hello")
            expect(bob, "ann: hello")
            say(bob, "")
        expect(ann, "* bob has gone")
        say(ann, "")
    assert ann.returncode == bob.returncode == 0


def test_replicated_dictionary() -> None:
    """A late joiner has what was there before, and gets what follows."""
    program, name = "replicated_dictionary.py", group_name()
    with example(program, name, "ann") as ann:
        expect(ann, "* ann has 0 entries")
        say(ann, "colour=blue")
        say(ann, "size=9")
        expect(ann, "size is 9")
        with example(program, name, "bob") as bob:
            expect(bob, "* bob has 2 entries")
            say(bob, "colour")
            expect(bob, "here colour is blue")
            say(bob, "colour=red")
            for member in (ann, bob):
                expect(member, "colour is red")
            say(ann, "colour")
            expect(ann, "here colour is red")
            say(bob, "")
        say(ann, "")
    assert ann.returncode == bob.returncode == 0


def test_work_distribution() -> None:
    """Two members do every other task; one that is left alone does all of them."""
    program, name = "work_distribution.py", group_name()
    with example(program, name, "ann") as ann:
        expect(ann, "* ann is here")
        with example(program, name, "bob") as bob:
            expect(bob, "* bob is here")
            for number in range(4):
                say(ann, f"task {number}")
            done = [f"{'bob' if n % 2 else 'ann'} has done task {n}" for n in range(4)]
            for member in (ann, bob):
                expect(member, *done)
            say(bob, "")
        say(ann, "task 4")
        say(ann, "task 5")
        expect(ann, "ann has done task 4", "ann has done task 5")
        say(ann, "")
    assert ann.returncode == bob.returncode == 0


@pytest.mark.parametrize("program", ["chat.py", "replicated_dictionary.py", "work_distribution.py"])
def test_ctrl_c_leaves_at_once(program: str) -> None:
    with example(program, group_name(), "ann") as ann:
        assert ann.stdout is not None
        assert ann.stdout.readline().startswith("* ann")
        ann.send_signal(signal.SIGINT)
    assert ann.returncode == 0


def test_send_file(tmp_path: Path) -> None:
    """Two take what one sends, byte for byte."""
    name, content = group_name(), os.urandom(20_000_000)
    (tmp_path / "file").write_bytes(content)
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    with (
        example("send_file.py", name, "take", str(places[0])) as one,
        example("send_file.py", name, "take", str(places[1])) as two,
        example("send_file.py", name, "send", str(tmp_path / "file"), "2") as sender,
    ):
        for taker in (one, two):
            expect(taker, "* file is here, 20,000,000 bytes")
    assert one.returncode == two.returncode == sender.returncode == 0
    assert all((place / "file").read_bytes() == content for place in places)


def test_examples_are_short() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 60, path.name
