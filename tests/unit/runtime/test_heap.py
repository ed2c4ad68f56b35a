"""Memory for large messages is used again, and never while anybody looks at it."""

import mmap
import platform
import subprocess
import sys

import pytest

from ringcast.runtime.heap import AHEAD, IDLE_TIDIES, KEPT_MAX, LARGE, Heap

SIZE = LARGE + 5


def view_of(lender: Heap, size: int = SIZE) -> memoryview:
    room = lender.room(size)
    assert room is not None
    return room.view


def test_a_small_message_gets_none() -> None:
    assert Heap().room(LARGE - 1) is None


def test_what_nobody_looks_at_is_lent_again() -> None:
    lender = Heap()
    view = view_of(lender)
    assert len(view) == SIZE
    view[:5] = b"first"
    del view
    assert bytes(view_of(lender)[:5]) == b"first"


def test_who_keeps_a_part_of_it_keeps_all_of_it() -> None:
    lender = Heap()
    view = view_of(lender)
    view[:5] = b"first"
    part = view.toreadonly()[1:3]
    del view
    other = view_of(lender)
    other[:5] = b"other"
    assert bytes(part) == b"ir"
    del part
    assert bytes(view_of(lender)[:5]) == b"first"


def test_one_that_is_too_small_or_far_too_large_is_not_used() -> None:
    lender = Heap()
    view_of(lender, 2 * LARGE)[:5] = b"first"
    assert bytes(view_of(lender, LARGE)[:5]) == bytes(5)
    assert bytes(view_of(lender, 2 * LARGE + 1)[:5]) == bytes(5)
    again = view_of(lender, 2 * LARGE - LARGE // 4)
    assert (len(again), bytes(again[:5])) == (2 * LARGE - LARGE // 4, b"first")


def test_what_was_not_needed_for_a_while_is_given_back() -> None:
    lender = Heap()
    view_of(lender)[:5] = b"first"
    assert lender.tidy()
    assert bytes(view_of(lender)[:5]) == b"first"
    assert [lender.tidy() for _ in range(IDLE_TIDIES)] == [True] * (IDLE_TIDIES - 1) + [False]
    assert bytes(view_of(lender)[:5]) == bytes(5)


def test_what_is_in_use_outlives_the_heap() -> None:
    lender = Heap()
    view = view_of(lender)
    view[:5] = b"first"
    lender.clear()
    assert not lender.tidy()
    assert bytes(view_of(lender)[:5]) == bytes(5)
    assert bytes(view[:5]) == b"first"


def test_only_so_much_is_remembered() -> None:
    lender = Heap()
    views = [view_of(lender) for _ in range(KEPT_MAX + 1)]
    for number, view in enumerate(views):
        view[0] = number
    del view
    views.clear()
    held = [view_of(lender) for _ in range(KEPT_MAX)]
    assert sorted(view[0] for view in held) == list(range(1, KEPT_MAX + 1))


def test_memory_is_prepared_ahead_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Map(mmap.mmap):
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            asked.append((start, length))

    monkeypatch.setattr(mmap, "mmap", Map)
    monkeypatch.setattr(sys, "platform", "linux")
    lender = Heap()
    room = lender.room(SIZE)
    assert room is not None
    assert asked == []
    room.prepare(1)
    room.prepare(AHEAD)
    room.prepare(3 * AHEAD + 1)
    room.prepare(SIZE)
    page = mmap.PAGESIZE
    assert asked[:2] == [(0, AHEAD), (AHEAD, 2 * AHEAD + page)]
    assert asked[-1][0] + asked[-1][1] == SIZE
    count = len(asked)
    del room
    again = lender.room(SIZE)
    assert again is not None
    again.prepare(SIZE)
    assert len(asked) == count


def test_a_kernel_that_prepares_nothing_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Map(mmap.mmap):
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            asked.append(start)
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Map)
    monkeypatch.setattr(sys, "platform", "linux")
    room = Heap().room(SIZE)
    assert room is not None
    room.prepare(1)
    room.prepare(SIZE)
    assert asked == [0]
    room.view[-1] = 7


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has other habits")
def test_what_small_messages_have_freed_is_not_given_back_to_the_kernel() -> None:
    script = """
import resource
from ringcast.runtime.heap import Heap
heap = Heap()
def come_and_go():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        messages = [bytes([1]) * 1_000 for _ in range(3_000)]
        del messages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
come_and_go()
print(come_and_go())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 1_000  # And not 20 times the 700 pages of these messages.
