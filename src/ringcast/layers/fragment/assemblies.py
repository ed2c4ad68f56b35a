"""The incomplete messages at one member: one per stream, bounded in number, bytes and time."""

from __future__ import annotations

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.stack.env import Env
from ringcast.core.stack.timers import NEVER
from ringcast.core.wire.fragments import Assembly, FragmentHeader, Fragments, read_header
from ringcast.core.wire.placement import Placement

Stream = tuple[Address, bool]
"""A sender, and whether its messages are for the group or for this member alone."""


class Assemblies:
    """The pieces of messages that are not whole yet; nothing is kept on a sender's word alone.

    A message that passes a bound is given up: its pieces are freed, and what still arrives of it is
    not kept."""

    def __init__(self, max_message: int, max_count: int, max_bytes: int, env: Env) -> None:
        self.nbytes = 0
        """Bytes of all pieces that are kept."""
        self._max_message = max_message
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._counters = env.counters
        self._env = env
        self.placement = Placement()
        """Where the receiver has the next fragment placed."""
        self._open: dict[Stream, Assembly] = {}
        self.lent = False
        """Whether memory was lent; the code that returns it clears this."""

    def take(self, stream: Stream, seqno: int, payload: Payload, now: float) -> Assembly | None:
        """Take a fragment; returns its assembly while that is open, or when it has just ended.

        It has ended when `ended` says so: then it is out of this table, to be joined or to be
        reported as broken. None for what is not a fragment, and for one that has arrived before.
        """
        header = read_header(payload)
        if header is None:
            self._counters["dropped_bad_fragment"] += 1
            return None
        assembly = self._open.get(stream)
        if assembly is None or assembly.message != header.message:
            self.drop(stream)
            assembly = self._open[stream] = self._begin(header, seqno)
        elif header.index < assembly.next:
            self._counters["duplicate_fragments"] += 1
            return None
        self.nbytes -= assembly.nbytes
        assembly.add(header, seqno, payload)
        self._count(stream, assembly, now)
        return assembly

    def take_placed(self, stream: Stream, batch: Batch, now: float) -> Assembly | None:
        """Take fragments that were placed in their message; None when `take` has to look at them
        one by one."""
        assembly = self._open.get(stream)
        if assembly is None or not isinstance(batch.payloads, Fragments):
            return None
        before = assembly.nbytes
        if not assembly.take_placed(batch.first, batch.payloads):
            return None
        self.nbytes -= before
        self._count(stream, assembly, now)
        return assembly

    def _count(self, stream: Stream, assembly: Assembly, now: float) -> None:
        """A piece of a message has arrived."""
        assembly.touched = now
        if self.nbytes + assembly.nbytes > self._max_bytes:
            assembly.give_up("there were too many bytes of messages in the making")
        if assembly.ended:
            del self._open[stream]
        else:
            self.nbytes += assembly.nbytes

    def advertise(self, stream: Stream) -> None:
        """Have the next fragment of a stream placed where it belongs."""
        self.placement.advertise(stream[0], self._open.get(stream))

    def _begin(self, header: FragmentHeader, seqno: int) -> Assembly:
        assembly = Assembly(header, seqno)
        making = sum(1 for other in self._open.values() if other.broken is None)
        if header.total > self._max_message:
            assembly.give_up(f"it has {header.total:,} bytes, more than max_message")
        elif making >= self._max_count:
            assembly.give_up("there were too many messages in the making")
        else:
            buffer = self._env.buffers.lend(header.total)
            if buffer is not None:
                self.lent = True
                assembly.use(buffer)
        return assembly

    def drop(self, stream: Stream) -> None:
        """Forget a message: its sender has begun something else, or has left."""
        assembly = self._open.pop(stream, None)
        if assembly is not None:
            self.nbytes -= assembly.nbytes
            self._counters["dropped_incomplete"] += 1
            self.placement.advertise(stream[0], None)

    def expire(self, before: float, reason: str) -> None:
        """Give up the messages of which nothing has arrived since then."""
        for assembly in self._open.values():
            if assembly.broken is None and assembly.touched <= before:
                self.nbytes -= assembly.nbytes
                assembly.give_up(reason)

    def nbytes_of(self, stream: Stream) -> int:
        """Bytes that are kept of one stream."""
        assembly = self._open.get(stream)
        return 0 if assembly is None else assembly.nbytes

    @property
    def oldest(self) -> float:
        """When the message that has waited longest for a fragment got its last one; NEVER if none
        waits."""
        waiting = [a.touched for a in self._open.values() if a.broken is None]
        return min(waiting, default=NEVER)

    def __bool__(self) -> bool:
        return bool(self._open)

    def progress(self) -> dict[str, str]:
        """How far each message is, by its sender."""
        return {
            f"{sender}{'' if is_group else ' alone'}": f"{a.nbytes} of {a.total}"
            for (sender, is_group), a in self._open.items()
        }
