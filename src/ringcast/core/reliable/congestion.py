"""Congestion control: how much may be in flight to a group, and how fast it may be sent.

The model is that of BBR, for several receivers. The acks of each receiver give the round trip and
the delivery rate of its path; the group's window and rate are the least of all paths. A path is in
one of two states:

    clear       nothing was lost lately. The window grows with every ack (slow start) up to the
                bound of the user, or until the path holds more than QUEUE_SECONDS of its rate.
                Nothing is paced.
    congested   a receiver has requested messages again. The rate is the highest delivery rate of
                the last samples; sending is paced at twice that rate until it stops growing, then
                at that rate: now and then a little more to probe, then a little less to drain what
                the probe has queued. The window bounds what is in flight
                to the path's rate times its round trip, and some slack.

A loss does not lower the rate, only a lower delivery rate does: so random loss costs what is lost,
and an overflowing queue costs the part of a probe that did not fit.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Set

from ringcast.core.model.address import Address
from ringcast.core.reliable.burst import LOST_BY_CHANCE, Burst
from ringcast.core.reliable.path import SAMPLE_SECONDS, SAMPLE_SECONDS_PACED, Path
from ringcast.core.reliable.phases import CALM, PHASE_SECONDS, Phases
from ringcast.core.reliable.ticker import ACK_SECONDS
from ringcast.core.stack.env import Env
from ringcast.core.wire.outbox import TRAIN_MAX

INITIAL_BYTES = 32_000
INITIAL_DATAGRAMS = 10
"""The window at the start: the larger of both (RFC 6928)."""
WINDOW_BYTES_MIN = 32_000
"""The window never falls below this, nor below two datagrams."""
QUEUE_SECONDS = 0.05
"""What a clear path may queue, in seconds of its rate."""
SLACK_SECONDS = 0.04
"""What a congested path may have in flight beyond two round trips: acks are late where a process
gets no CPU for a while. The pace keeps it out of the queues."""
REPAIR_ROUNDS = 8
"""How many more windows may be in flight for each message that is lost by chance: what it waits for
its repair counts as in flight, and so do all messages that wait with it."""
CLEAR_SECONDS = 10.0
"""A path is clear when nothing was lost for this long."""
STARTUP_GAIN = 2.0
"""The pace from the first loss on, until the rate stops growing."""
STARTUP_GROWTH = 1.25
STARTUP_SAMPLES = 3
STARTUP_ROUNDS = 3
"""The path counts as full after this many samples and round trips without such growth."""
STARTUP_LOST_MAX = 0.1
"""The path is full as well when more than this was lost, in relation to the window."""
STARTUP_LOST_ROUNDS = 1.5
"""What is requested within this many round trips after the start was lost before it."""
PHASE_MORE_SECONDS = 0.04
"""A phase takes a round trip and two more, up to these seconds, or the time of eight datagrams."""
PHASE_ACKS = 0.5
"""The acks of all receivers that fall into a phase at the least, in intervals between two acks for
each of them: in large groups acks are rarer."""
PACKET_BYTES = 1_500
"""What a packet has on most networks; larger datagrams count as several."""
WAKE_SECONDS = 0.0005
WAKE_DATAGRAMS = 8
"""What is sent at once when it is woken in time: the larger of both, so that runs fill their
datagrams on slow paths too."""
TRAIN_SECONDS = 0.000_25
TRAIN_PACKETS_MIN = 22
"""A train is what the slowest path carries in these seconds, and 22 packets at the least: it leaves
at the speed of the interface, and a queue before a slower link has to hold it."""
MARK_SECONDS = 0.0002
MARKS_MAX = 512
MESSAGES_MAX = 1 << 62
"""More than any seqno."""


def first_window(env: Env, bound: int) -> int:
    """Bytes that may be in flight before the first ack."""
    return min(bound, max(INITIAL_BYTES, INITIAL_DATAGRAMS * env.mtu))


class Congestion:
    """The window and the pace of one sender."""

    __slots__ = (
        "_best",
        "_best_at",
        "_bound",
        "_budget",
        "_budget_at",
        "_burst",
        "_env",
        "_first",
        "_idle",
        "_is_calm",
        "_is_starting",
        "_limited_at",
        "_mark_highs",
        "_mark_times",
        "_phase_end",
        "_phases",
        "_released",
        "_stale",
        "_started_at",
        "calm",
        "free_since",
        "is_paced",
        "next_mark",
        "paths",
        "rate",
        "ready_at",
        "train_bytes",
        "window",
    )

    def __init__(self, env: Env, bound: int, released: Set[Address] = frozenset()) -> None:
        """bound: the bytes that may be in flight at the most; released: the members that are not
        waited for, whose paths do not count."""
        self._released = released
        self._env = env
        self._bound = bound
        self.paths: dict[Address, Path] = {}
        self._first = self.window = first_window(env, bound)
        """Bytes that may be in flight."""
        self.train_bytes = TRAIN_MAX
        """Bytes that may leave at the speed of the interface."""
        self.rate = 0.0
        """Bytes per second at which sending is paced."""
        self.is_paced = False
        self.ready_at = 0.0
        """While paced: when something may be sent next."""
        self._budget, self._budget_at = 0.0, 0.0
        self._phases, self._phase_end = Phases(), 0.0
        self._burst = Burst()
        self._is_starting, self._best, self._best_at, self._stale = False, 0.0, 0.0, 0
        self._started_at = 0.0
        self.calm, self._is_calm = (0, 0), False
        """The messages that were sent in the last calm phase, and whether it goes on."""
        self._mark_highs: list[int] = []
        self._mark_times: list[float] = []
        self.next_mark = 0.0
        self._idle = 0.0
        """Seconds in which the sender could have sent, and did not."""
        self.free_since: float | None = 0.0
        """None while nothing more may be sent."""
        self._limited_at = 0.0

    # Sending -------------------------------------------------------------------------------------

    def on_sent(self, first: int, nbytes: int) -> None:
        """A run was sent that begins with this seqno. To be called while paced, and from
        `next_mark` on."""
        now = self._env.now
        if now >= self.next_mark:
            if len(self._mark_highs) >= MARKS_MAX:
                del self._mark_highs[: MARKS_MAX // 2], self._mark_times[: MARKS_MAX // 2]
            self._mark_highs.append(first)
            self._mark_times.append(now)
            self.next_mark = now + MARK_SECONDS
        if self.is_paced:
            self._note_calm(first)
            self._phases.on_sent(nbytes)
            self._spend(nbytes)

    def _note_calm(self, first: int) -> None:
        """A run is sent that begins with this message."""
        is_calm = self._phases.phase == CALM
        if is_calm != self._is_calm:
            self._is_calm = is_calm
            self.calm = (first, MESSAGES_MAX) if is_calm else (self.calm[0], first - 1)

    def on_limited(self) -> None:
        """Nothing more may be sent for now."""
        if self.free_since is not None:
            self._limited_at = self._env.now
            self._idle += self._limited_at - self.free_since
            self.free_since = None

    def on_free(self) -> None:
        """Something may be sent: from here on the sender is idle until it is limited again."""
        if self.free_since is None:
            is_late = self.is_paced and self.ready_at > self._limited_at
            self.free_since = self.ready_at if is_late else self._env.now

    def _idle_total(self, now: float) -> float:
        return self._idle + (0.0 if self.free_since is None else now - self.free_since)

    def room(self, in_flight: int, bound: int) -> int:
        """How many more bytes may be sent now, with these in flight and this bound."""
        left = min(bound, self.window) - in_flight
        if left > 0 and self.is_paced:
            left = min(left, self.budget())
        if left <= 0:
            self.on_limited()
        elif self.free_since is None:
            self.on_free()
        return left

    def budget(self) -> int:
        """While paced: how many bytes may be sent now; 0 until `ready_at`."""
        now = self._env.now
        if now < self.ready_at:
            return 0
        if now >= self._phase_end:
            self._next_phase(now)
        pace = self._phases.gain * self.rate
        self._budget += pace * (now - self._budget_at)
        if self._budget > self._burst.nbytes:
            is_probe = self._phases.is_probe and not self._is_starting
            excess = self._phases.gain if is_probe else 0.0
            self._budget = self._burst.limit(self._budget, pace, self._env.mtu, excess)
        self._budget_at = now
        return max(1, int(self._budget))

    def on_repaired(self, nbytes: int) -> None:
        """Messages were sent again. To be called while paced."""
        self._phases.on_repaired(nbytes)
        self._spend(nbytes)

    def _spend(self, nbytes: int) -> None:
        """Count bytes against the pace."""
        self.budget()
        self._budget -= nbytes
        if self._budget <= 0:
            pace = self._phases.gain * self.rate
            wake = max(WAKE_SECONDS, WAKE_DATAGRAMS * min(self._env.mtu, PACKET_BYTES) / pace)
            seconds = wake - self._budget / pace
            self.ready_at = max(self.ready_at, self._budget_at + seconds)

    def _next_phase(self, now: float) -> None:
        queued = max([path.standing_queue() for path in self._counted()], default=0.0)
        self._burst.on_phase(self._phases.gain * self.rate)
        phases, receivers = self._phases, len(self.paths)
        phases.go_on(self.rate, receivers, queued, self._env.rng.random)
        acks = PHASE_ACKS * ACK_SECONDS * receivers
        datagrams = 8 * min(self._env.mtu, PACKET_BYTES) / self.rate
        round_trip = self._slowest()
        trips = round_trip + min(2 * round_trip, PHASE_MORE_SECONDS)
        phases.seconds = max(PHASE_SECONDS, acks, trips, datagrams)
        self._phase_end = now + phases.seconds

    # Acks and requests ---------------------------------------------------------------------------

    def on_arrived(self, member: Address, up_to: int, high: int, message_bytes: float) -> None:
        """A receiver has this many of the messages up to `high`."""
        path, now = self.paths[member], self._env.now
        gained = (up_to - path.arrived) * message_bytes
        index = bisect_right(self._mark_highs, up_to) - 1
        sent_at = 0.0
        if index >= 0:
            sent_at = self._mark_times[index]
            path.on_rtt(now - sent_at, self._mark_highs[index], now)
        was_limited, window = self.free_since is None, path.window
        idle = self._idle_total(now)
        is_held = self.is_paced and not self._is_starting
        seconds = SAMPLE_SECONDS_PACED if is_held else SAMPLE_SECONDS
        has_sample = path.on_arrived(up_to, high, message_bytes, idle, now, sent_at, seconds)
        if now > path.lost_at + CLEAR_SECONDS:
            if was_limited:
                path.window = min(path.window + gained, self._bound)
            if path.latest_rtt > path.base_rtt + QUEUE_SECONDS and path.rate:
                path.window = min(path.window, path.rate * (path.base_rtt + QUEUE_SECONDS))
        if path.window != window or self.is_paced:
            self._update(now)
        if has_sample:
            self._size_trains()
            if self._is_starting:
                self._watch_start()

    def _size_trains(self) -> None:
        rate = min([path.rate for path in self._counted() if path.is_measured], default=math.inf)
        packets = TRAIN_PACKETS_MIN * min(self._env.mtu, PACKET_BYTES)
        self.train_bytes = int(min(TRAIN_MAX, max(packets, TRAIN_SECONDS * rate)))

    def _watch_start(self) -> None:
        """End the start when the rate does not grow any more."""
        if self.rate >= STARTUP_GROWTH * self._best:
            self._best, self._best_at, self._stale = self.rate, self._env.now, 0
            return
        self._stale += 1
        rounds = STARTUP_ROUNDS * self._slowest()
        has_waited = self._env.now >= self._best_at + rounds
        if has_waited and self._stale >= STARTUP_SAMPLES * len(self.paths):
            self._end_start()

    def _end_start(self) -> None:
        self._is_starting = False
        self._burst.end_start(STARTUP_GAIN)
        self._phases.drain_next(self.rate)
        self._phase_end = self._env.now
        for path in self.paths.values():
            path.expect_loss()

    def on_lost(
        self, member: Address, count: int, message_bytes: float, calm: int | None = None
    ) -> None:
        """A receiver has requested this many messages for the first time, `calm` of them from those
        that were sent in the last calm phase; None stands for all."""
        path = self.paths.get(member)
        if path is not None:
            if not (self._is_starting or self._phases.is_probe):  # That says nothing of bursts.
                self._burst.on_lost(count, message_bytes, self._phases.chance)
            window = path.window
            path.on_lost(count, self._env.now)
            calm = count if calm is None else calm
            self._phases.on_lost(count * message_bytes, calm * message_bytes)
            self._update(self._env.now)
            lost = path.lost - LOST_BY_CHANCE
            is_much = STARTUP_GAIN * lost * message_bytes > STARTUP_LOST_MAX * window
            is_recent = self._env.now > self._started_at + STARTUP_LOST_ROUNDS * path.base_rtt
            if self._is_starting and is_much and is_recent and path.is_measured:
                self._end_start()

    def round_trip(self, member: Address) -> float:
        """The seconds after which something sent to a member may be acked; 0 while unknown."""
        path = self.paths.get(member)
        return 0.0 if path is None else path.clean_rtt

    def _update(self, now: float) -> None:
        """Take the least of all paths."""
        window, rate, was_full = float(self._bound), 0.0, False
        more = (STARTUP_GAIN if self._is_starting else 1.0) + REPAIR_ROUNDS * self._phases.chance
        for path in self._counted():
            if now <= path.lost_at + CLEAR_SECONDS:
                was_full = was_full or path.is_queued(QUEUE_SECONDS)
                seconds = more * (2 * path.base_rtt + SLACK_SECONDS)
                path.window = min(path.rate * seconds, self._bound)
                rate = min(rate, path.rate) if rate else path.rate
            path.window = max(path.window, more * WINDOW_BYTES_MIN, 2 * self._env.mtu)
            window = min(window, path.window)
        self.window = int(window)
        if rate and not self.is_paced:
            self._budget, self._budget_at, self.ready_at = float(WINDOW_BYTES_MIN), now, now
            self._is_starting, self._best, self._best_at, self._stale = True, rate, now, 0
            self._phases.gain, self._phase_end, self._started_at = STARTUP_GAIN, math.inf, now
            self.rate = rate
            if was_full:
                self._end_start()
        self.is_paced, self.rate = rate > 0, rate

    # Members -------------------------------------------------------------------------------------

    def _slowest(self) -> float:
        """The longest round trip."""
        return max([path.base_rtt for path in self._counted()], default=0.0)

    def _counted(self) -> Iterable[Path]:
        """The paths to the members that are waited for."""
        if not self._released:
            return self.paths.values()
        return [path for member, path in self.paths.items() if member not in self._released]

    def update(self) -> None:
        """Take the least of all paths again, after members were released or waited for again."""
        self._update(self._env.now)

    def join(self, member: Address, start: int) -> None:
        """Count a receiver that has everything up to here."""
        self.paths[member] = Path(start, self._first, self._env.now)
        self._update(self._env.now)

    def change(self, left: Iterable[Address], joined: Iterable[Address], start: int) -> None:
        """Count the receivers of a new view; the paths are compared once for all of them."""
        for member in left:
            self.paths.pop(member, None)
        for member in joined:
            self.paths[member] = Path(start, self._first, self._env.now)
        self._update(self._env.now)

    def leave(self, member: Address) -> None:
        """Count a receiver no longer."""
        if self.paths.pop(member, None) is not None:
            self._update(self._env.now)
