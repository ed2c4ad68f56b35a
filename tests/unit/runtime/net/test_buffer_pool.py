"""Memory for large messages is used again, and never while anybody looks at it."""

import mmap
import platform
import subprocess
import sys

import pytest

from ringcast.runtime.net.buffer_pool import (
    IDLE_TIDIES,
    LARGE_BYTES,
    MAPPINGS_MAX,
    POPULATE_BYTES,
    BufferPool,
)

SIZE = LARGE_BYTES + 5


def view_of(pool: BufferPool, size: int = SIZE) -> memoryview:
    buffer = pool.lend(size)
    assert buffer is not None
    return buffer.view


def test_a_small_message_gets_none() -> None:
    assert BufferPool().lend(LARGE_BYTES - 1) is None


def test_what_nobody_looks_at_is_lent_again() -> None:
    pool = BufferPool()
    view = view_of(pool)
    assert len(view) == SIZE
    view[:5] = b"first"
    del view
    assert bytes(view_of(pool)[:5]) == b"first"


def test_who_keeps_a_part_of_it_keeps_all_of_it() -> None:
    pool = BufferPool()
    view = view_of(pool)
    view[:5] = b"first"
    part = view.toreadonly()[1:3]
    del view
    other = view_of(pool)
    other[:5] = b"other"
    assert bytes(part) == b"ir"
    del part
    assert bytes(view_of(pool)[:5]) == b"first"


def test_one_that_is_too_small_or_far_too_large_is_not_used() -> None:
    pool = BufferPool()
    view_of(pool, 2 * LARGE_BYTES)[:5] = b"first"
    assert bytes(view_of(pool, LARGE_BYTES)[:5]) == bytes(5)
    assert bytes(view_of(pool, 2 * LARGE_BYTES + 1)[:5]) == bytes(5)
    again = view_of(pool, 2 * LARGE_BYTES - LARGE_BYTES // 4)
    assert (len(again), bytes(again[:5])) == (2 * LARGE_BYTES - LARGE_BYTES // 4, b"first")


def test_what_was_not_needed_for_a_while_is_given_back() -> None:
    pool = BufferPool()
    view_of(pool)[:5] = b"first"
    assert pool.tidy()
    assert bytes(view_of(pool)[:5]) == b"first"
    assert [pool.tidy() for _ in range(IDLE_TIDIES)] == [True] * (IDLE_TIDIES - 1) + [False]
    assert bytes(view_of(pool)[:5]) == bytes(5)


def test_what_is_in_use_outlives_the_heap() -> None:
    pool = BufferPool()
    view = view_of(pool)
    view[:5] = b"first"
    pool.clear()
    assert not pool.tidy()
    assert bytes(view_of(pool)[:5]) == bytes(5)
    assert bytes(view[:5]) == b"first"


def test_what_is_remembered_is_bounded() -> None:
    pool = BufferPool()
    views = [view_of(pool) for _ in range(MAPPINGS_MAX + 1)]
    for number, view in enumerate(views):
        view[0] = number
    del view
    views.clear()
    held = [view_of(pool) for _ in range(MAPPINGS_MAX)]
    assert sorted(view[0] for view in held) == list(range(1, MAPPINGS_MAX + 1))


def test_memory_is_prepared_ahead_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Map(mmap.mmap):
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            asked.append((start, length))

    monkeypatch.setattr(mmap, "mmap", Map)
    monkeypatch.setattr(sys, "platform", "linux")
    pool = BufferPool()
    buffer = pool.lend(SIZE)
    assert buffer is not None
    assert asked == []
    buffer.prepare(1)
    buffer.prepare(POPULATE_BYTES)
    buffer.prepare(3 * POPULATE_BYTES + 1)
    buffer.prepare(SIZE)
    page = mmap.PAGESIZE
    assert asked[:2] == [(0, POPULATE_BYTES), (POPULATE_BYTES, 2 * POPULATE_BYTES + page)]
    assert asked[-1][0] + asked[-1][1] == SIZE
    count = len(asked)
    del buffer
    again = pool.lend(SIZE)
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
    buffer = BufferPool().lend(SIZE)
    assert buffer is not None
    buffer.prepare(1)
    buffer.prepare(SIZE)
    assert asked == [0]
    buffer.view[-1] = 7


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has other habits")
def test_what_small_messages_have_freed_is_not_given_back_to_the_kernel() -> None:
    script = """
import resource
from ringcast.runtime.net.buffer_pool import BufferPool
pool = BufferPool()
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
