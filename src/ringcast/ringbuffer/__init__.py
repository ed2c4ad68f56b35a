"""The RingBuffer for threads, and the checker that runs every interleaving of its steps."""

from ringcast.ringbuffer.checker import (
    Added,
    CheckerVerdict,
    ScheduleEnding,
    Threads,
    explore,
    replay,
)
from ringcast.ringbuffer.ring import RingBuffer
from ringcast.ringbuffer.story import main, show

__all__ = [
    "Added",
    "CheckerVerdict",
    "RingBuffer",
    "ScheduleEnding",
    "Threads",
    "explore",
    "main",
    "replay",
    "show",
]
