"""Lines from a descriptor, and the ways in which a console ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ringcast import Batch, LocalError, sync
from ringcast.core.model.events import Event
from ringcast.runtime.ops import console
from ringcast.runtime.ops.console import Console, read_lines
from tests.runtime.support import SOON, group_name, memory


@contextmanager
def pipe(*chunks: bytes) -> Iterator[int]:
    """A descriptor to read these from; more can be written until its other end is closed."""
    reading, writing = os.pipe()
    for chunk in chunks:
        os.write(writing, chunk)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)


def test_lines_whatever_their_ends() -> None:
    with pipe(b"one\ntwo\r\n\n", b"three") as fd:
        assert [line for lines in read_lines(fd) for line in lines] == [
            b"one",
            b"two",
            b"",
            b"three",
        ]
    with pipe() as fd:
        assert list(read_lines(fd)) == []


def test_a_line_over_several_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "READ_SIZE", 4)
    with pipe(b"abcdefgh\nij\nklmnop") as fd:
        assert [line for lines in read_lines(fd) for line in lines] == [
            b"abcdefgh",
            b"ij",
            b"klmnop",
        ]


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LINE_MAX", 10)
    with pipe(b"x" * 11) as fd, pytest.raises(LocalError, match="longer than 10 bytes"):
        list(read_lines(fd))


def test_an_input_that_cannot_be_read() -> None:
    directory = os.open("/", os.O_RDONLY)
    try:
        with pytest.raises(LocalError, match="Is a directory"):
            list(read_lines(directory))
    finally:
        os.close(directory)


def test_everything_is_shown_before_the_end() -> None:
    shown: list[Event] = []
    group = sync.join(group_name(), memory(), timeout=SOON)
    with pipe(b"one\ntwo\n") as fd:
        Console(group, shown.append).run(fd)
    assert group.closed is not None
    payloads = [bytes(p) for event in shown if isinstance(event, Batch) for p in event.payloads]
    assert payloads == [b"one", b"two"]


def test_stop_ends_a_console_that_stays() -> None:
    group = sync.join(group_name(), memory(), timeout=SOON)
    ours: list[Console] = []

    def show(event: Event) -> None:
        if isinstance(event, Batch):
            ours[0].stop()

    ours.append(Console(group, show))
    with pipe(b"now\n") as fd:
        ours[0].run(fd, stay=True)
    assert group.closed is not None


def test_what_goes_wrong_is_raised_after_leaving() -> None:
    def show(event: Event) -> None:
        raise BrokenPipeError

    group = sync.join(group_name(), memory(), timeout=SOON)
    with pipe(b"now\n") as fd, pytest.raises(BrokenPipeError):
        Console(group, show).run(fd, stay=True)
    assert group.closed is not None
