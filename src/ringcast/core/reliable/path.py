"""The path to one receiver: its round trip and its delivery rate, from acks and requests."""

from __future__ import annotations

from collections import deque

from ringcast.core.reliable.ticker import ACK_SECONDS

SAMPLE_SECONDS = 0.008
SAMPLE_SECONDS_PACED = 0.02
SAMPLE_SECONDS_MAX = 0.1
"""The seconds over which a delivery rate is measured: a round trip within these bounds, or two
round trips where that is more. The first is for the start, which has to be quick. While the pace is
held, samples are longer: acks are read some milliseconds late now and then, and the highest of many
short samples was a tenth to a third above what the path carried."""
SAMPLE_MESSAGES = 10
"""The least messages of a sample that is shorter than RATE_SECONDS."""
OUTAGE_SECONDS = 0.25
"""A path without an ack for this long was broken, or idle: receivers ack on each tick."""
IDLE_MAX = 0.25
"""The share of a sample in which the sender may have been idle."""
GUESS_SECONDS = 0.01
"""The round trip, when messages are lost before one was measured."""
RATE_MIN = 30_000.0
"""Bytes per second; no path counts as slower."""
RATE_SECONDS = 1.0
"""Delivery rates that are remembered, or those of ten round trips; the highest counts."""
LOST_MAX = 0.5
LOST_GROWTH = 2.0
LOST_MESSAGES = 16
"""A path has become narrower when more was lost during a sample, in relation to what arrived, when
the share that was lost has grown by this factor, and when it is no accident of a few messages."""
NARROWER = 0.5
"""What such a sample leaves of the rate at the least: a receiver that gets no CPU for a while looks
like a narrow path as well."""
LOSS_SAMPLES = 16
"""The samples over which the share that is lost is smoothed, about."""
RTT_SECONDS = 10.0
"""The least round trip of the last one to two such times counts."""


class Path:
    """What acks and requests tell of the path to one receiver."""

    __slots__ = (
        "_acked_at",
        "_end",
        "_ended",
        "_least_rtt",
        "_marked",
        "_rates",
        "_rtt_at",
        "_rtt_last_min",
        "_since",
        "_since_arrived",
        "_since_idle",
        "_since_sent",
        "_was_idle",
        "arrived",
        "clean_rtt",
        "latest_rtt",
        "loss",
        "lost",
        "lost_at",
        "rate",
        "rtt",
        "rtt_min",
        "window",
    )

    def __init__(self, arrived: int, window: int, now: float) -> None:
        self.arrived = arrived
        """How many messages have arrived, counted as seqnos."""
        self.window = float(window)
        self.rate = 0.0
        """Bytes per second; 0 while unknown."""
        self.rtt = self.rtt_min = 0.0
        """The smoothed and the least round trip; 0 while unknown."""
        self.clean_rtt = 0.0
        """The smoothed round trip without the time of repairs: acks count what has arrived, so a
        message looks late while others before it wait for their repair."""
        self.latest_rtt = self._least_rtt = 0.0
        self.lost_at = float("-inf")
        self._rates: deque[tuple[float, float]] = deque()
        """Times and rates that no later rate exceeds; the first is the highest."""
        self._rtt_at = now
        self._rtt_last_min = 0.0
        self._marked = arrived
        """The newest mark whose round trip was measured."""
        self._since, self._since_arrived, self._end = now, arrived, arrived
        """Where the sample began, and the seqno that has to arrive before it ends."""
        self._since_idle = 0.0
        self._since_sent = 0.0
        """When the message was sent that had arrived when the sample began."""
        self._ended: tuple[float, int, float] | None = None
        """The same three of the sample before."""
        self._was_idle = False
        """Whether the sender was idle in it, so that only a higher rate counts."""
        self._acked_at = now
        self.lost = 0
        """Messages that were requested during the sample."""
        self.loss = 0.0
        """The share of the messages that is lost, smoothed."""

    def on_rtt(self, seconds: float, mark: int, now: float) -> None:
        """The message of a mark was sent this long ago, and has arrived."""
        if mark <= self._marked:
            return
        self._marked = mark
        is_repaired = now - seconds < self.lost_at  # Part of it may be the time of a repair (Karn).
        if is_repaired:
            if not self.rtt:
                return
            seconds = min(seconds, 2 * self.rtt)
        self.latest_rtt = seconds
        self._least_rtt = min(self._least_rtt, seconds) if self._least_rtt else seconds
        if seconds < self.rtt / 2:  # What was before was an outage, or a first message lost.
            self.rtt = 2 * seconds
        self.rtt = seconds if not self.rtt else self.rtt + (seconds - self.rtt) / 8
        if not self.clean_rtt:
            self.clean_rtt = seconds
        elif not is_repaired or seconds < self.clean_rtt:
            self.clean_rtt += (seconds - self.clean_rtt) / 8
        if now > self._rtt_at + RTT_SECONDS:
            self._rtt_at, self._rtt_last_min, self.rtt_min = now, self.rtt_min, seconds
        self.rtt_min = min(self.rtt_min, seconds) if self.rtt_min else seconds

    @property
    def base_rtt(self) -> float:
        """The round trip without queues, as far as it was seen."""
        return min(self.rtt_min, self._rtt_last_min) if self._rtt_last_min else self.rtt_min

    def on_arrived(
        self,
        up_to: int,
        high: int,
        message_bytes: float,
        idle: float,
        now: float,
        sent_at: float = 0.0,
        sample_seconds: float = SAMPLE_SECONDS,
    ) -> bool:
        """The receiver has this many messages, of up to `high` that were sent, and the last of them
        at `sent_at`; whether that ends a sample."""
        self.arrived = up_to
        is_outage = now - self._acked_at > max(OUTAGE_SECONDS, 4 * self.rtt)
        self._acked_at = now
        if is_outage:  # It tells nothing of the rate.
            self._ended = None
            self._begin(now, up_to, high, idle, sent_at)
            return False
        elapsed = now - self._since
        if elapsed <= 0:
            # A process that was woken late reads several acks at once: this one belongs to the
            # sample that the first of them has ended.
            if self._ended is not None:
                rate = _rate(self._ended, now, up_to, sent_at, message_bytes, self._was_idle)
                if not self._was_idle or 0 < self.rate < rate:
                    self._remember(rate, now, False)
            self._begin(now, up_to, high, idle, sent_at)
            return False
        if elapsed < sample_seconds or (
            up_to < self._end and elapsed < max(SAMPLE_SECONDS_MAX, 2 * self.rtt)
        ):
            return False
        count = up_to - self._since_arrived
        if count < SAMPLE_MESSAGES and elapsed < RATE_SECONDS:
            return False  # A few messages tell when repairs arrived, and not what the path carries.
        ended = (self._since, self._since_arrived, self._since_sent)
        self._was_idle = idle - self._since_idle > IDLE_MAX * elapsed
        rate = _rate(ended, now, up_to, sent_at, message_bytes, self._was_idle)
        lost = self.lost / max(1, self.lost + count)
        is_narrower = (
            self.lost > max(LOST_MESSAGES, LOST_MAX * count) and lost > LOST_GROWTH * self.loss
        )
        self.loss += (lost - self.loss) / LOSS_SAMPLES
        # While the sender had nothing to send, the rate was its own and not the path's.
        if not self._was_idle or 0 < self.rate < rate:
            self._remember(rate, now, is_narrower)
        self._ended = ended
        self._begin(now, up_to, high, idle, sent_at)
        return True

    def _begin(self, now: float, up_to: int, high: int, idle: float, sent_at: float) -> None:
        """Begin a sample."""
        self._since, self._since_arrived, self._end = now, up_to, high
        self._since_idle, self._since_sent, self.lost = idle, sent_at, 0

    @property
    def is_measured(self) -> bool:
        """Whether the rate is one at which messages arrived, and no first guess."""
        return bool(self._rates)

    def is_queued(self, seconds: float) -> bool:
        """Whether a queue of more than this was in front of it: then its measured rate is all that
        it carries."""
        return self.is_measured and self.latest_rtt > self.base_rtt + seconds

    def standing_queue(self) -> float:
        """The seconds that were queued in front of it all the time since this was asked last."""
        least, self._least_rtt = self._least_rtt, 0.0
        return max(0.0, least - self.base_rtt)

    def expect_loss(self) -> None:
        """The sender has filled the queue: what is lost now is no sign of a narrower path."""
        self.loss = max(self.loss, LOST_MAX)

    def _remember(self, rate: float, now: float, is_narrower: bool) -> None:
        rates, oldest = self._rates, now - max(RATE_SECONDS, 10 * self.base_rtt)
        if is_narrower:
            rate = max(rate, NARROWER * self.rate)
            rates.clear()
        while rates and rates[-1][1] <= rate:
            rates.pop()
        rates.append((now, rate))
        while rates[0][0] < oldest:
            rates.popleft()
        self.rate = max(RATE_MIN, rates[0][1])

    def on_lost(self, count: int, now: float) -> None:
        """The receiver has requested messages again."""
        self.lost += count
        self.lost_at = now
        if not self.rate:
            self.rate = max(self.window / 2 / (self.rtt or GUESS_SECONDS), RATE_MIN)


def _rate(
    ended: tuple[float, int, float],
    now: float,
    up_to: int,
    sent_at: float,
    message_bytes: float,
    was_idle: bool,
) -> float:
    """The delivery rate of a sample that ends now.

    Acks that were read late bunch up: what arrived was not sent any faster than it was sent. Where
    the sender was idle, or late, its first ack may be as old as acks are apart.
    """
    since, arrived, since_sent = ended
    seconds = now - since + (ACK_SECONDS if was_idle else 0.0)
    return (up_to - arrived) * message_bytes / max(seconds, sent_at - since_sent)
