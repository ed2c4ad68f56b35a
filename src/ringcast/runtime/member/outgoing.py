"""The send queue of a member: single messages that are gathered, and sends that wait for room.

**Sends that wait.** A caller that finds the window full leaves its messages here. The thread that
makes room (often the driver's, when an ack arrives) sends the next of them at once, in the order of
the calls, and wakes a caller when its last message is in the window. So no thread has to be woken
between an ack and the messages that it makes room for.

**Single messages.** Sent one by one, each would cost a trip through the stack and a datagram. So
while they follow each other closely (`hot`), they are appended to a list, without the lock. The
caller whose message fills a datagram sends them all; the driver's thread sends the rest, every
`FLUSH_SECONDS` while this lasts. A message that is sent alone never waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.stack.stack import Stack
from ringcast.errors import Closed, LocalError
from ringcast.runtime.loop.waiters import Waiter

CHUNK_MESSAGES = 4_096
"""Messages of a long list that are handed to the stack at once: the rest is not copied then."""
HOT_GAP = 0.000_2
"""Two single messages within this many seconds turn gathering on."""
FLUSH_SECONDS = 0.000_5
"""The longest time that a message is gathered and not sent, in seconds, while there is room."""
SINGLE_MAX = 4_096
"""The largest message that is gathered, in bytes."""
SERVICE_QUEUE_MAX = 8_192
"""Calls and service messages that may wait for one destination; further ones are dropped."""
SINGLES_BYTES = 1_000_000
SINGLES_MAX = 1_024
"""About how much is gathered before the caller sends it."""
LONG_AGO = float("-inf")


class PendingSend:
    """The messages of one call of send, and how many of them are sent."""

    __slots__ = (
        "error", "flags", "limit", "moved", "payloads", "sent", "since", "size", "to", "waiter"
    )  # fmt: skip

    def __init__(
        self,
        payloads: Sequence[Payload],
        to: Address | None,
        waiter: Waiter | None,
        since: float,
        flags: int = 0,
        size: int | None = None,
    ) -> None:
        self.payloads = payloads
        self.flags = flags
        self.size = size
        """What `common_size` says of the payloads, if it was asked."""
        self.to = to
        self.waiter = waiter
        """The caller; None for single messages, whose callers do not wait."""
        self.since = self.moved = since
        """When the call was made, and when something of it was sent last."""
        self.limit: float | None = None
        """How long its messages may wait without being moved, if the stack says so."""
        self.sent = 0
        self.error: LocalError | None = None

    @property
    def done(self) -> bool:
        """Whether the caller may go on."""
        return self.error is not None or self.sent == len(self.payloads)


class Outgoing:
    """The queues of what is to be sent, one per destination, so that none waits for another's."""

    def __init__(self, stack: Stack, transmit: Callable[[], None]) -> None:
        self._stack = stack
        self._transmit = transmit
        self.queues: dict[Address | None, deque[PendingSend]] = {}
        """What waits for room, by destination; no queue is empty."""
        self._singles: list[Payload] = []
        self._single_max = min(SINGLE_MAX, stack.env.mtu // 2)
        self.last_single = LONG_AGO
        """When a single message was sent; `LONG_AGO` if messages were taken since: the next one may
        then be an answer, and members in a dialogue gather none."""
        self.barriers = 0
        """How many callers wait until the stack has an end of what was sent: the rest waits."""
        self.hot = False
        """Whether single messages are gathered; then `flush` is due every FLUSH_SECONDS."""
        self.cooled: Callable[[], None] = lambda: None
        """Called without the lock: a message was gathered that no other thread would flush."""

    # Single messages ------------------------------------------------------------------------------

    def note(self, payload: Payload) -> bool:
        """Gather a message for all members, without the lock; False when `send` has to send it."""
        was_hot = self.hot
        if not was_hot:
            return False
        size, singles = len(payload), self._singles
        count = len(singles)
        if size > self._single_max or count * size >= SINGLES_BYTES or count >= SINGLES_MAX:
            return False
        singles.append(payload)
        if not self.hot:  # Another thread has just flushed for the last time.
            self.cooled()
        return True

    def flush(self, now: float) -> None:
        """Send what was gathered; stop gathering if there was nothing."""
        if not self._singles:
            self.hot = False
        else:
            self.send((), None, now)

    def _take_singles(self) -> list[Payload]:
        # Other threads may append meanwhile, so exactly what was read is deleted.
        taken = self._singles[:]
        del self._singles[: len(taken)]
        return taken

    # Sending --------------------------------------------------------------------------------------

    def send_service(self, payload: Payload, to: Address | None, flags: int, now: float) -> None:
        """Send a call or a service message, or queue it; no caller waits for it."""
        if to is None and self._singles:
            self.send((), None, now)  # Keeps the order of sending.
        run = PendingSend([payload], to, None, now, flags)
        if len(self.queues.get(to, ())) >= SERVICE_QUEUE_MAX:
            self._stack.counters["dropped_service_queue_full"] += 1
        elif to in self.queues or not self._feed_one(run, now):
            self.add(run)

    def send(
        self,
        payloads: Sequence[Payload],
        to: Address | None,
        now: float,
        flags: int = 0,
        size: int | None = None,
    ) -> int:
        """Send what there is room for; how many of `payloads` that was. The rest is to be added.

        Raises what Stack.send raises.
        """
        if to in self.queues or (to is None and self._singles):
            self._stack.check(payloads, to)  # What can never be sent is refused before it waits.
        if to is None:
            if len(payloads) == 1:
                self._update_hot(now)
            if self._singles:
                return self._send_behind_singles(payloads, now)
        is_held = to in self.queues or (self.barriers and to is None)
        return 0 if is_held else self._offer(payloads, to, now, flags, size)

    def _send_behind_singles(self, payloads: Sequence[Payload], now: float) -> int:
        singles = self._take_singles()
        sent = 0
        if None not in self.queues and not self.barriers:
            sent = self._offer([*singles, *payloads], None, now)
        if sent < len(singles):
            self.add(PendingSend(singles[sent:], None, None, now))
        return max(0, sent - len(singles))

    def _update_hot(self, now: float) -> None:
        """Turn gathering on when single messages follow each other closely."""
        if now - self.last_single < HOT_GAP and not self.queues:
            self.hot = True
        self.last_single = now

    def _offer(
        self,
        payloads: Sequence[Payload],
        to: Address | None,
        now: float,
        flags: int = 0,
        size: int | None = None,
    ) -> int:
        # The first call gets the whole list, so that what can never be sent is refused before
        # anything is.
        sent = self._stack.send(payloads, to, now, flags, size)
        if sent:
            self._transmit()
        while 0 < sent < len(payloads):
            count = self._stack.send(payloads[sent : sent + CHUNK_MESSAGES], to, now, flags, size)
            if not count:
                break
            sent += count
            self._transmit()
        return sent

    # Waiting for room -----------------------------------------------------------------------------

    def add(self, run: PendingSend) -> None:
        """A run waits for room, behind those that wait already."""
        self.queues.setdefault(run.to, deque()).append(run)
        if run.to is None:
            self._stack.blocked_time.begin()
        self.hot = False
        if self._stack.block_times:
            run.limit = self._stack.block_times.limit(max(map(len, run.payloads)))

    def remove(self, run: PendingSend) -> None:
        """A caller waits no longer; messages that were sent stay sent."""
        queue = self.queues.get(run.to)
        if queue is not None and run in queue:
            queue.remove(run)
            if not queue:
                del self.queues[run.to]
                if run.to is None:
                    self._stack.blocked_time.end()

    def feed(self, now: float) -> bool:
        """Send what there is room for now; whether anything was sent."""
        went = False
        for to in list(self.queues):
            queue = self.queues[to]
            while queue and self._feed_one(queue[0], now):
                went = True
                if not queue[0].done:
                    break
                run = queue.popleft()
                if run.waiter is not None:
                    run.waiter.tell()
            if not queue:
                del self.queues[to]
        if went and None in self.queues:
            self._stack.blocked_time.begin()
        return went

    def _feed_one(self, run: PendingSend, now: float) -> bool:
        """Send what there is room for; whether anything was sent, or the send failed."""
        view = self._stack.view
        # A member that has left is never writable: send() raises for it.
        is_member = run.to is None or (view is not None and run.to in view)
        if self.barriers and run.to is None:
            return False
        if is_member and not self._stack.writable(run.to):
            return False
        rest = run.payloads if not run.sent else run.payloads[run.sent : run.sent + CHUNK_MESSAGES]
        try:
            count = self._offer(rest, run.to, now, run.flags, run.size)
        except LocalError as error:
            run.error = error
            return True
        if count:
            run.sent += count
            run.moved = now
        return count > 0

    # Ending ---------------------------------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Every waiting caller gets Closed; messages without a waiting caller stay."""
        self.hot = False
        for to, queue in list(self.queues.items()):
            for run in queue:
                if run.waiter is not None:
                    run.error = Closed(_closed(reason, run))
                    run.waiter.tell()
            kept = deque(run for run in queue if run.waiter is None)
            if kept:
                self.queues[to] = kept
            else:
                del self.queues[to]

    @property
    def unsent(self) -> int:
        """Unsent messages whose callers do not wait for them."""
        runs = [run for run in self.runs if run.waiter is None]
        return len(self._singles) + sum(len(run.payloads) - run.sent for run in runs)

    @property
    def runs(self) -> list[PendingSend]:
        """All sends that wait, in order per destination."""
        return [run for queue in self.queues.values() for run in queue]


def _closed(reason: str, run: PendingSend) -> str:
    sent = f"; {run.sent} of {len(run.payloads)} messages were sent" if run.sent else ""
    return f"the group is closed: {reason}{sent}"
