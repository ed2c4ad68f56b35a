"""What callers want to send: single messages on their way to a run, and runs that wait for room.

**Runs that wait.** A caller that finds the window full leaves its messages here. Whoever makes room
(often the driver's thread, when an ack comes) sends the next of them at once, in the order in which
the callers came, and lets a caller go on when its last message is in the window. So no thread has
to be woken between an ack and the messages that it makes room for.

**Single messages.** Sent one by one, each would cost a trip through the stack and a datagram. So as
soon as they come close together (`hot`), they are only noted down, without the lock; the caller
whose message fills a datagram sends them all, and the driver's thread, which looks every `PAUSE`
seconds as long as that goes on, sends what is left. A message that comes alone never waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ringcast.core.address import Address
from ringcast.core.batch import Payload
from ringcast.core.stack import Stack
from ringcast.errors import Closed, LocalError
from ringcast.runtime.waiters import Waiter

CHUNK = 4_096
"""Of a long list so many messages are handed to the stack at once: the rest is not copied then."""
HOT_GAP = 0.000_2
"""Two single messages within so many seconds, and the next ones are noted down."""
PAUSE = 0.000_5
"""The longest that a message is noted down and not sent, in seconds, while there is room."""
SINGLE_MAX = 4_096
"""The largest message that is noted down, in bytes."""
TALK_MAX = 8_192
"""Calls and letters that may wait for room to one destination; one on top of that is dropped."""
SINGLES_BYTES = 1_000_000
SINGLES_MAX = 1_024
"""How much is noted down, about, before the caller sends it."""
NEVER = float("-inf")


class Run:
    """One call's messages, and how many of them are sent."""

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
        """The caller; None for single messages, whose callers have gone on."""
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
        self.queues: dict[Address | None, deque[Run]] = {}
        """What waits for room, by destination; no queue is empty."""
        self._singles: list[Payload] = []
        self._single_max = min(SINGLE_MAX, stack.env.mtu // 2)
        self.last_single = NEVER
        """When a single message was sent; `NEVER` if messages were taken since: then the next one
        may be an answer, and those who talk to each other wait for none to gather."""
        self.hot = False
        """Whether single messages are noted down; then `flush` has to be called now and then."""
        self.cooled: Callable[[], None] = lambda: None
        """Called without the lock: something was noted down that nobody would flush."""

    # Single messages ------------------------------------------------------------------------------

    def note(self, payload: Payload) -> bool:
        """Note a message for everybody down, without the lock; False when `send` has to do it."""
        was_hot = self.hot
        if not was_hot:
            return False
        size, singles = len(payload), self._singles
        count = len(singles)
        if size > self._single_max or count * size >= SINGLES_BYTES or count >= SINGLES_MAX:
            return False
        singles.append(payload)
        if not self.hot:  # Somebody has flushed the last time, just before.
            self.cooled()
        return True

    def flush(self, now: float) -> None:
        """Send what was noted down; cold again, if there was nothing."""
        if not self._singles:
            self.hot = False
        else:
            self.send((), None, now)

    def _take_singles(self) -> list[Payload]:
        # Others may append meanwhile, so exactly what was read is deleted.
        taken = self._singles[:]
        del self._singles[: len(taken)]
        return taken

    # Sending --------------------------------------------------------------------------------------

    def talk(self, payload: Payload, to: Address | None, flags: int, now: float) -> None:
        """Send a call or a letter, or let it wait; nobody waits for that."""
        if to is None and self._singles:
            self.send((), None, now)  # What was sent before it goes before it.
        run = Run([payload], to, None, now, flags)
        if len(self.queues.get(to, ())) >= TALK_MAX:
            self._stack.counters["dropped_letters_waiting"] += 1
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
                self._feel(now)
            if self._singles:
                return self._send_behind_singles(payloads, now)
        return 0 if to in self.queues else self._offer(payloads, to, now, flags, size)

    def _send_behind_singles(self, payloads: Sequence[Payload], now: float) -> int:
        singles = self._take_singles()
        sent = 0
        if None not in self.queues:
            sent = self._offer([*singles, *payloads], None, now)
        if sent < len(singles):
            self.add(Run(singles[sent:], None, None, now))
        return max(0, sent - len(singles))

    def _feel(self, now: float) -> None:
        """Whether single messages come so close together that it is worth to gather them."""
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
            count = self._stack.send(payloads[sent : sent + CHUNK], to, now, flags, size)
            if not count:
                break
            sent += count
            self._transmit()
        return sent

    # Waiting for room -----------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """A run waits for room, behind those that wait already."""
        self.queues.setdefault(run.to, deque()).append(run)
        self.hot = False
        if self._stack.block_times:
            run.limit = self._stack.block_times.limit(max(map(len, run.payloads)))

    def remove(self, run: Run) -> None:
        """A caller waits no longer; what was sent stays sent."""
        queue = self.queues.get(run.to)
        if queue is not None and run in queue:
            queue.remove(run)
            if not queue:
                del self.queues[run.to]

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
        return went

    def _feed_one(self, run: Run, now: float) -> bool:
        """Whether anything of a run went, or it came to its end in another way."""
        view = self._stack.view
        # Whoever has left will never be writable: send() says so.
        is_member = run.to is None or (view is not None and run.to in view)
        if is_member and not self._stack.writable(run.to):
            return False
        rest = run.payloads if not run.sent else run.payloads[run.sent : run.sent + CHUNK]
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
        """Every caller that waits gets Closed; what callers have left behind stays."""
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
    def left_behind(self) -> int:
        """How many messages are not sent whose callers have gone on."""
        runs = [run for run in self.runs if run.waiter is None]
        return len(self._singles) + sum(len(run.payloads) - run.sent for run in runs)

    @property
    def runs(self) -> list[Run]:
        """What waits, first come first."""
        return [run for queue in self.queues.values() for run in queue]


def _closed(reason: str, run: Run) -> str:
    sent = f"; {run.sent} of {len(run.payloads)} messages were sent" if run.sent else ""
    return f"the group is closed: {reason}{sent}"
