"""A pool of memory for large messages: used again for later ones, and mapped ahead of the writing.

New memory is expensive: the kernel clears each page, and mapping 100 MB page by page takes longer
than copying a message there. So the memory of one message is used for a later one, as soon as no
view of it is left, in the application or in a window. A resize of the memory fails while a view of
it exists, and that is the test.

New memory is mapped a little ahead of the writing, many pages at once, in two thirds of the time.
Large pages took a fifth of it when the kernel had some at hand, and several times as long when they
had not been used for some seconds, in a virtual machine that gives free memory back to its host.
No memory is mapped on a sender's word alone, and memory that no message has needed for a while is
given back.

Smaller messages use the C library's memory, which behaves alike: see `keep_what_is_freed`.
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
"""Memory that was not lent during this many calls of `tidy` is forgotten."""

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
        """Memory that was lent, and may still be in use; the latest last."""

    def lend(self, size: int) -> _PooledBuffer | None:
        """Memory for a large message; None for a small one, or when the kernel refuses."""
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
        """Give back memory that was not lent for a while; whether to call this again later.

        Memory in use is freed with its last view.
        """
        for kept in self._kept:
            kept.idle += 1
        self._kept = [kept for kept in self._kept if kept.idle < IDLE_TIDIES]
        return bool(self._kept)

    def clear(self) -> None:
        """Give back all memory: at once where it is not in use, else with its last view."""
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
