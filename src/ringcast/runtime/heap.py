"""Memory for large messages: asked from the kernel in large pages, where it has them.

Writing a message of 100 MB for the first time takes the kernel four times as long as the copy
itself, since it hands out and clears 25,000 pages one by one; with large pages it is 50. Nothing is
taken before it is written to, so a message that is only announced costs nothing.
"""

from __future__ import annotations

import mmap

LARGE = 8_000_000
"""Messages from this size on get memory of their own, in bytes."""


def large_memory(size: int) -> memoryview | None:
    """Memory for a large message; None for a small one, or when the kernel has none."""
    if size < LARGE:
        return None
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return None
    return memoryview(memory)
