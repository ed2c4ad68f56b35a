"""Memory for large messages: used again for the next ones, and asked from the kernel in advance.

New memory is dear: the kernel clears each page that it hands out, and hands out 100 MB page by page
in more time than it takes to copy a message there. So what held one message holds a later one, once
nobody looks at it: neither the application, which may keep a view of any part of it for as long as
it likes, nor a window. The memory itself counts who looks at it. An attempt to resize it fails as
long as there is anybody, and that is how it is asked.

What is new is asked for a little ahead of the writing, many pages at once, in two thirds of the
time. Large pages took a fifth of it when they were at hand, and several times as long when they had
not been in use for some seconds, in a virtual machine that gives free memory back to its host.
Nothing is taken on a sender's word alone, and what no message has needed for a while is given back.

Smaller messages are the C library's, which has the same habit in small: see `keep_what_is_freed`.
"""

from __future__ import annotations

import mmap
import sys

LARGE_BYTES = 8_000_000
"""Messages from this size on get memory of their own, in bytes."""
MAPPINGS_MAX = 16
"""Pieces of memory that are remembered; the one that was lent longest ago is forgotten first."""
POPULATE_BYTES = 1 << 21
"""Bytes of new memory that are asked for at once."""
IDLE_TIDIES = 2
"""What was not lent while `tidy` was called so often is forgotten."""

_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, of Linux 5.14.


def keep_what_is_freed() -> None:
    """Have the C library keep what is freed, up to twice `LARGE_BYTES`, for what comes next.

    Without this glibc gives the end of its heap back to the kernel as soon as 128 KB of it are
    free, which is two datagrams, and gets it back page by page: that took a third of a receiver's
    time where it happened for every datagram. It moves the bound by itself to twice the size of the
    largest piece that was ever given back (mallopt(3), M_TRIM_THRESHOLD), so one is, unused.
    """
    bytes(LARGE_BYTES)


class BufferPool:
    """The memory of one member's large messages (`core.model.buffers.Buffers`)."""

    def __init__(self) -> None:
        keep_what_is_freed()
        self._kept: list[_Mapping] = []
        """What was lent, and may be in use or not; the latest last."""

    def lend(self, size: int) -> _PooledBuffer | None:
        """Memory for a large message; None for a small one, or when the kernel has none."""
        if size < LARGE_BYTES:
            return None
        memory = next((kept for kept in self._kept if kept.suits(size)), None)
        if memory is not None:
            self._kept.remove(memory)
        else:
            try:
                memory = _Mapping(size)
            except OSError:
                return None
        memory.idle = 0
        self._kept.append(memory)
        del self._kept[:-MAPPINGS_MAX]
        return _PooledBuffer(memory, size)

    def tidy(self) -> bool:
        """Give back what was not lent for a while; whether to call this again after a while.

        What is in use then is free when its last user lets go of it.
        """
        for kept in self._kept:
            kept.idle += 1
        self._kept = [kept for kept in self._kept if kept.idle < IDLE_TIDIES]
        return bool(self._kept)

    def clear(self) -> None:
        """Give back everything that is not in use, and the rest when it is no longer."""
        self._kept.clear()


class _Mapping:
    """A piece of memory that is lent again and again."""

    __slots__ = ("idle", "map", "ready")

    def __init__(self, size: int) -> None:
        """Raises OSError when the kernel has none."""
        self.map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.ready = 0 if sys.platform == "linux" else size
        """This many bytes from its beginning are mapped, or will be when they are written."""
        self.idle = 0
        """How often it was not lent between two calls of `tidy`."""

    def suits(self, size: int) -> bool:
        """Whether it can be lent for this many bytes: it is large enough, not much
        larger, and no view of it exists."""
        length = len(self.map)
        if not size <= length <= size + size // 4:
            return False
        try:
            self.map.resize(length)
        except (BufferError, OSError, SystemError, ValueError):
            return False
        return True


class _PooledBuffer:
    """What is lent for one message (`core.model.buffers.Buffer`)."""

    __slots__ = ("_memory", "view")

    def __init__(self, memory: _Mapping, size: int) -> None:
        self._memory = memory
        self.view = memoryview(memory.map)[:size]
        """All of it."""

    def prepare(self, up_to: int) -> None:
        """This many bytes are about to be written: have the kernel map them."""
        memory = self._memory
        if up_to <= memory.ready:
            return
        length, begin = len(memory.map), memory.ready
        end = min(length, max(begin + POPULATE_BYTES, -(-up_to // mmap.PAGESIZE) * mmap.PAGESIZE))
        memory.ready = end
        try:
            memory.map.madvise(_POPULATE_WRITE, begin, end - begin)
        except OSError:  # An older kernel: then it comes page by page.
            memory.ready = length
