"""Fragmentation: messages of any size up to a bound, over layers that carry what fits a datagram.

A message that is too large for a datagram is cut into fragments with consecutive seqnos; the whole
takes the place of its last fragment in the order. Smaller messages pass through in their runs,
untouched.

- Sending is lazy: a large message is cut as far as there is room below, and the rest waits. While
  it waits, there is no room for others, which keeps the order. A message that a view with new
  members overtakes is begun anew, so that they get it whole.
- Receiving trusts no header: a message grows by what arrived. Incomplete messages are bounded in
  number, bytes and time, and go when their sender does. A message that is given up is announced to
  the application in its place, as skipped.
- Own messages come back as the very object that was sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, count

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, FRAGMENT, SERVICE, Batch, Payload
from ringcast.core.model.events import Progress, Skipped
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Control, Intake, Numbering, Ports, Tracker
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.stack.timers import NEVER
from ringcast.core.wire.fragments import WHOLE, Assembly, Cutting, Fragments, split
from ringcast.core.wire.layout import DATA_SIZE, FRAGMENT_HEADER_SIZE, HEADER_SIZE
from ringcast.core.wire.placement import Placement
from ringcast.errors import ConfigError
from ringcast.layers.fragment.assemblies import Assemblies, Stream

RUN_MAX = 16
"""Fragments that are sent at once; more would make bursts of them."""
TIDY_INTERVAL = 1.0
"""Seconds between two looks at the memory that was lent for large messages."""


@protocol(role="fragment", under="large", flags=FRAGMENT | WHOLE)
@dataclass(frozen=True, kw_only=True)
class Fragment(Spec):
    """How large messages are cut and put together."""

    frag_size: int = 0
    """Bytes of a fragment with its header of 24; 0 takes what a datagram holds. Smaller ones only
    cost more."""
    max_message: int = 256_000_000
    """The largest message, in bytes: larger ones are refused when they are sent, and not believed
    when they come."""
    max_incomplete: int = 256
    """Incomplete messages at once, over all senders; one on top of that is skipped."""
    max_incomplete_bytes: int = 1_000_000_000
    """Bytes of all incomplete messages; one that would take more is skipped."""
    incomplete_timeout: float = 600.0
    """Seconds without a new fragment after which a message in the making is given up. Longer than
    anything that may stop its sender, since what comes afterwards of it is of no use any more."""
    progress_step: int = 16_000_000
    """Bytes of a message between two Progress events, at sender and receivers; 0 for none."""

    def __post_init__(self) -> None:
        if self.frag_size and self.frag_size <= FRAGMENT_HEADER_SIZE:
            raise ConfigError(
                f"Fragment.frag_size is {self.frag_size}: give more than the {FRAGMENT_HEADER_SIZE}"
                " bytes of a fragment's header, or 0 for what a datagram holds"
            )
        for field in ("max_message", "max_incomplete"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Fragment.{field} is {getattr(self, field)}: give at least 1")
        if self.max_incomplete_bytes < self.max_message:
            raise ConfigError(
                f"Fragment.max_incomplete_bytes is {self.max_incomplete_bytes}: give at least one"
                f" max_message of {self.max_message}"
            )
        if self.incomplete_timeout <= 0:
            raise ConfigError(
                f"Fragment.incomplete_timeout is {self.incomplete_timeout}: give seconds above 0"
            )
        if self.progress_step < 0:
            raise ConfigError(f"Fragment.progress_step is {self.progress_step}: give 0 or more")

    def build(self, env: Env) -> FragmentLayer:
        """The layer with these settings. Raises ConfigError when a fragment does not fit a
        datagram."""
        largest = env.mtu - HEADER_SIZE - DATA_SIZE - 4
        if self.frag_size > largest:
            raise ConfigError(
                f"Fragment.frag_size is {self.frag_size}: at most {largest} bytes fit a datagram of"
                f" {env.mtu}; give less, or 0"
            )
        return FragmentLayer(env, self)


@dataclass(frozen=True, kw_only=True)
class FragmentSnapshot(PartSnapshot):
    """Messages that travel in fragments."""

    frag_size: int
    """Bytes of a fragment."""
    holding: int
    """Messages that this member accepted and that have not left whole."""
    incomplete_bytes: int
    """Bytes of messages of which fragments are missing."""
    incomplete: Mapping[str, str]
    """By sender: how much of its message has arrived."""


class FragmentLayer(Layer):
    """Cuts large messages and puts them together."""

    def __init__(self, env: Env, spec: Fragment) -> None:
        super().__init__(env)
        self.spec = spec
        self.on_resize()
        self._queues: dict[Address | None, deque[Batch | Cutting]] = {}
        self._assemblies = Assemblies(
            spec.max_message, spec.max_incomplete, spec.max_incomplete_bytes, env
        )
        self._numbers = count(1)
        """Of messages that are cut."""
        self._flags = FRAGMENT
        self._pushing = False
        self._again = False

    def on_resize(self) -> None:
        """Larger fragments that are on their way already leave in pieces (`layers.wire`)."""
        largest = self.env.mtu - HEADER_SIZE - DATA_SIZE - 4
        self.frag_size = min(self.spec.frag_size or largest, largest)

    def connect(self, ports: Ports) -> None:
        self._control, self._intake = ports[Control], ports[Intake]
        self._numbering, self._tracker = ports[Numbering], ports.get(Tracker)
        self._assemblies.placement = ports[Placement]
        if self._tracker is not None:
            self._flags |= WHOLE

    # Sending -------------------------------------------------------------------------------------

    def room(self, dest: Address | None) -> tuple[int, int]:
        return (0, 0) if dest in self._queues else self.below.room(dest)

    def down(self, batch: Batch) -> None:
        if batch.dest not in self._queues:
            if (batch.size or batch.nbytes) <= self.frag_size or (
                not batch.size and max(map(len, batch.payloads)) <= self.frag_size
            ):
                self.below.down(batch)
                return
            self._queues[batch.dest] = deque()
        self._queues[batch.dest].extend(split(batch, self.frag_size, self._numbers))
        self._push()

    def resume(self) -> None:
        self._push()
        self.above.resume()

    @property
    def holding(self) -> int:
        """How many messages were accepted and have not left whole."""
        return sum(
            1 if isinstance(item, Cutting) else len(item)
            for queue in self._queues.values()
            for item in queue
        )

    def holding_bytes(self, dest: Address | None) -> int:
        """Bytes of messages to the group or a member that were accepted and have not left whole."""
        return sum(
            len(item.payload) if isinstance(item, Cutting) else item.nbytes
            for item in self._queues.get(dest, ())
        )

    @property
    def max_message(self) -> int:
        return self.spec.max_message

    @property
    def max_unit(self) -> int:
        return self.frag_size

    @property
    def drained(self) -> bool:
        return not self._queues and self.above.drained

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of messages in the making."""
        return self._assemblies.nbytes

    def incomplete_of(self, sender: Address) -> int:
        """Bytes that this member has of a sender's message to the group."""
        return self._assemblies.nbytes_of((sender, True))

    def _push(self) -> None:
        """Send what waits, as far as there is room. Sending may make room: then once more."""
        if self._pushing:
            self._again = True
            return
        self._pushing, self._again = True, True
        while self._again:
            self._again = False
            for dest in list(self._queues):
                self._drain(dest)
        self._pushing = False

    def _drain(self, dest: Address | None) -> None:
        queue = self._queues[dest]
        while queue:
            if self._has_left(queue[0], dest):
                queue.popleft()
                continue
            messages, nbytes = self.below.room(dest)
            if messages <= 0:
                return
            head = queue[0]
            if isinstance(head, Cutting):
                most = min(messages, RUN_MAX, max(1, nbytes // self.frag_size))
                self._send_fragments(head, dest, most)
            else:
                queue.popleft()
                rest = self._send_run(head, messages, nbytes)
                if rest is not None:
                    queue.appendleft(rest)
        del self._queues[dest]

    def _send_fragments(self, cutting: Cutting, dest: Address | None, most: int) -> None:
        fragments = cutting.cut(most)
        if fragments:  # None when the last ones wait below.
            cutting.last = self._numbering.sent_high + len(fragments)
            self._report(self.env.me, cutting, cutting.done, len(cutting.payload))
            self.below.down(
                Batch(
                    self.env.me,
                    fragments,
                    fragments.nbytes,
                    dest=dest,
                    flags=self._flags | cutting.flags,
                    size=fragments.size,
                )
            )

    def _has_left(self, head: Batch | Cutting, dest: Address | None) -> bool:
        """Whether a large message is on its way to the last fragment: none of them is held by a
        layer below."""
        if isinstance(head, Batch) or head.next < head.count:
            return False
        if dest is None:
            if self._numbering.sent_high < head.last:
                return False
            if self._tracker is not None:
                self._tracker.sent(head.last)
        return True

    def _send_run(self, run: Batch, messages: int, nbytes: int) -> Batch | None:
        """Send what there is room for, and return the rest."""
        most = min(len(run), messages)
        if run.nbytes > nbytes:
            ends = list(accumulate(map(len, run.payloads)))
            most = min(most, max(1, bisect_right(ends, nbytes)))
        middle = run.first + most
        rest = None if most == len(run) else run.part(middle, run.last)
        self.below.down(run.part(run.first, middle - 1))
        return rest

    # Receiving -----------------------------------------------------------------------------------

    def up(self, batch: Batch) -> None:
        if not batch.flags & FRAGMENT:
            if self._assemblies:
                self._assemblies.drop((batch.sender, batch.dest is None))
            self.above.up(batch)
        elif batch.sender == self.env.me and batch.dest is None:
            self._up_own(batch)
        else:
            self._up_fragments(batch)

    def skipped(self, event: Skipped) -> None:
        self._assemblies.drop((event.sender, True))
        self._watch()
        self.above.skipped(event)

    def _up_own(self, batch: Batch) -> None:
        """Fragments of the message that is being cut come back while they are sent: only the last
        one matters."""
        cutting = self._queues[None][0]
        assert isinstance(cutting, Cutting)
        assert isinstance(batch.payloads, Fragments)
        end = batch.last - 1 if batch.payloads.is_end else batch.last
        if batch.first <= end:
            self.above.absorbed(batch.part(batch.first, end))
        if batch.payloads.is_end:
            self._up_whole(batch, batch.last, cutting.payload)

    def _up_fragments(self, batch: Batch) -> None:
        stream = (batch.sender, batch.dest is None)
        if isinstance(batch.payloads, Fragments) and self._up_placed(stream, batch):
            return
        begin = batch.first
        for seqno, payload in enumerate(batch.payloads, batch.first):
            assembly = self._assemblies.take(stream, seqno, payload, self.env.now)
            if assembly is None:
                continue
            if not assembly.ended:
                if assembly.broken is None:
                    self._report(batch.sender, assembly, assembly.nbytes, assembly.total)
                    if assembly.next == 1 and batch.dest is None:
                        self._begun(batch, assembly)
                continue
            if begin < seqno:
                self.above.absorbed(batch.part(begin, seqno - 1))
            begin = seqno + 1
            if assembly.broken is None:
                self._report(batch.sender, assembly, assembly.nbytes, assembly.total)
            self._up_ended(batch, seqno, assembly)
        if begin <= batch.last:
            self.above.absorbed(batch.part(begin, batch.last))
        if not self._assemblies or not self.env.timers.is_set(self, "incomplete"):
            self._watch()
        self._advertise(stream)

    def _up_placed(self, stream: Stream, batch: Batch) -> bool:
        """Take a run whose fragments are in their places; False when they are not the next."""
        assembly = self._assemblies.take_placed(stream, batch, self.env.now)
        if assembly is None:
            return False
        if assembly.broken is None:
            self._report(batch.sender, assembly, assembly.nbytes, assembly.total)
        end = batch.last - 1 if assembly.ended else batch.last
        if batch.first <= end:
            self.above.absorbed(batch.part(batch.first, end))
        if assembly.ended:
            self._up_ended(batch, batch.last, assembly)
            self._watch()
        self._advertise(stream)
        return True

    def _advertise(self, stream: Stream) -> None:
        if stream[1]:
            self._assemblies.advertise(stream)
        if self._assemblies.lent:
            self._assemblies.lent = False
            self.env.timers.set_earlier(self, "tidy", self.env.now + TIDY_INTERVAL)

    def _begun(self, batch: Batch, assembly: Assembly) -> None:
        """The first fragment of a message has arrived."""
        if self._tracker is not None and batch.flags & WHOLE:
            last = assembly.first + assembly.count - 1
            self._numbering.suppress_acks_until(batch.sender, last)
            self._tracker.begun(batch.sender, assembly.first, last)

    def _up_ended(self, batch: Batch, seqno: int, assembly: Assembly) -> None:
        whole = assembly.take()
        if whole is not None:
            self._assemblies.placement.is_whole = isinstance(whole, memoryview)
            self._up_whole(batch, seqno, whole)
            return
        self.env.counters["skipped_incomplete"] += 1
        reason, is_direct = assembly.broken or "", batch.dest is not None
        self._control.emit(Skipped(batch.sender, assembly.first, seqno, reason, is_direct))

    def _up_whole(self, batch: Batch, seqno: int, payload: Payload) -> None:
        whole = Batch(batch.sender, [payload], len(payload), dest=batch.dest, first=seqno)
        whole.flags, whole.sent_at = batch.flags & ~FRAGMENT, batch.sent_at
        self.above.up(whole)

    def on_timer(self, name: str) -> None:
        """Give up messages of which nothing has arrived for too long; free memory."""
        if name == "tidy":
            if self.env.buffers.tidy():
                self.env.timers.set(self, "tidy", self.env.now + TIDY_INTERVAL)
            return
        timeout = self.spec.incomplete_timeout
        reason = f"nothing of it came for {timeout:g} seconds"
        self._assemblies.expire(self.env.now - timeout, reason)
        self._watch()

    def _watch(self) -> None:
        """See to it that the oldest message in the making is given up in time."""
        oldest = self._assemblies.oldest
        if oldest == NEVER:
            self.env.timers.cancel(self, "incomplete")
        else:
            self.env.timers.set(self, "incomplete", oldest + self.spec.incomplete_timeout)

    # ---------------------------------------------------------------------------------------------

    def abandon(self, member: Address) -> int:
        queue = self._queues.pop(member, ())
        self.env.counters["dropped_backlog"] += bool(queue)
        mine = (item for item in queue if not item.flags & (CALL | SERVICE))
        held = sum(1 if isinstance(item, Cutting) else len(item) for item in mine)
        return held + self.above.abandon(member)

    def on_view(self, installation: Installation) -> None:
        for member in installation.left:
            self._assemblies.drop((member, True))
            self._assemblies.drop((member, False))
        head = self._queues[None][0] if None in self._queues else None
        newcomers = set(installation.joined) - {self.env.me}
        if isinstance(head, Cutting) and head.next and newcomers:
            head.begin_anew(next(self._numbers), self.frag_size)
            self.env.counters["begun_anew"] += 1

    def _report(self, sender: Address, message: Cutting | Assembly, done: int, total: int) -> None:
        step = self.spec.progress_step
        if step and total >= step and (done >= message.reported + step or done == total):
            message.reported = done
            self._control.emit(Progress(sender, message.message, done, total))

    def snapshot(self) -> FragmentSnapshot:
        return FragmentSnapshot(
            frag_size=self.frag_size,
            holding=self.holding,
            incomplete_bytes=self.incomplete_bytes,
            incomplete=self._assemblies.progress(),
        )
