"""Flow control by credits (SFC): a sender stops when one receiver's application lags
behind.

Every sender has `max_credits` bytes for messages to the group. The message that uses them up is
still sent; then the sender asks all members for new credits, behind that message, and waits until
*all* have answered. A receiver answers when its application has taken everything that the sender
had sent when it asked. So the bytes of one sender that wait for an application never exceed what
that sender may send between two answers: `max_credits` and a message.

The design note has receivers count bytes and answer at `max_credits`. A sender spends `max_credits`
between two requests, so "has counted that much" and "has taken all that was sent before the
request" are the same thing, and the request carries the seqno up to which it holds. The seqno is
also right where the count is not: for a newcomer that saw only the end of a round (the note starts
its count full for this, which would let twice the credits through), for messages that were skipped,
and for the overshoot of each round, which adds up in a count. The count is kept as a figure. What
the note calls pending_credit_requesters is two things: `missing`, whose answers this sender waits
for, and `asked`, the request of a sender that this receiver still owes an answer.

A lost request or answer is repaired by asking again. After `max_block_time` the request is urgent:
a receiver whose application has taken all that came then answers, although something is lost on its
way and will be repaired later. A receiver whose application is behind does not: that is what makes
senders wait. An application that cannot afford that bounds it by size (`max_block_times`):
past its time a message goes out without credits, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, Batch
from ringcast.core.model.block_times import BlockTimes
from ringcast.core.reliable.rtt import RttEstimator
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Brake, Numbering, Ports, Taker
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import Credit, CreditRequest, Frame
from ringcast.errors import ConfigError
from ringcast.layers.flow.credits import Source

SINGLE_ASKS_MAX = 4
"""Up to this many members are asked again one by one; more are asked by one frame to all."""
MIN_ASK_SHARE = 0.05
"""A request is not repeated before this part of `ask_interval`."""
GRANTED_MAX = 1_024
"""Members of a view to come whose requests are remembered."""


@protocol(role="flow", under="fragment", offers=(Brake, Taker))
@dataclass(frozen=True, kw_only=True)
class Flow(Spec):
    """Credits for messages to the group."""

    max_credits: int = 4_000_000
    """Bytes that a sender may send before all members have answered. More hides longer round trips;
    every member needs this much memory for each sender."""
    max_block_time: float = 2.0
    """Seconds after which the request for credits becomes urgent: receivers answer unless their own
    application is behind. Shorter gets over losses sooner, and lets more bytes come at once when
    they are repaired."""
    ask_interval: float = 0.1
    """Seconds after which a request that was not answered is repeated for the first time at the
    latest; sooner where answers usually come sooner. Then twice as long, up to max_block_time."""
    max_block_times: str = ""
    """How long a message waits for credits at the most, by size: "1000:10,10000:100" lets one of up
    to 1,000 bytes go after 10 ms, one of up to 10,000 after 100 ms; larger ones wait. Costs flow
    control, never messages."""

    def __post_init__(self) -> None:
        if self.max_credits < 1:
            raise ConfigError(f"Flow.max_credits is {self.max_credits}: give at least 1 byte")
        if self.max_block_time <= 0:
            raise ConfigError(f"Flow.max_block_time is {self.max_block_time}: give seconds above 0")
        if not 0 < self.ask_interval <= self.max_block_time:
            raise ConfigError(
                f"Flow.ask_interval is {self.ask_interval}: give seconds above 0, up to the"
                f" max_block_time of {self.max_block_time}"
            )
        BlockTimes(self.max_block_times, "Flow.max_block_times")

    def build(self, env: Env) -> FlowLayer:
        """The layer with these settings."""
        return FlowLayer(env, self)


@dataclass(frozen=True, kw_only=True)
class FlowSnapshot(PartSnapshot):
    """Credits of this member as a sender, and what it owes others as a receiver."""

    credits: int
    """Bytes that may be sent before all members have answered."""
    missing: tuple[Address, ...]
    """The members whose answer this sender waits for."""
    owed: tuple[Address, ...]
    """The senders whose request this receiver has not answered."""
    waiting: Mapping[Address, int]
    """By sender: bytes that wait for the application."""
    counted: Mapping[Address, int]
    """By sender: bytes that have arrived since the last answer."""


class FlowLayer(Layer):
    """Spends credits as a sender, gives them as a receiver."""

    kinds = (CreditRequest, Credit)

    def __init__(self, env: Env, spec: Flow) -> None:
        super().__init__(env)
        self.spec = spec
        self.credits = spec.max_credits
        """Bytes that may be sent; 0 or less means to wait."""
        self.missing: set[Address] = set()
        """The members whose answers this sender waits for."""
        self.sources: dict[Address, Source] = {}
        """Of every member of the view, this one included."""
        self._block_times = BlockTimes(spec.max_block_times)
        self._held: Batch | None = None
        self._held_is_due = False
        self._resuming = self._again = False
        self._request = CreditRequest(0, 0, 0)
        self._asked_at = 0.0
        self._debt = 0
        """Bytes that were sent since the request, past their time."""
        self._pause = 0.0
        self._is_repeated = False
        self._rtt = RttEstimator(spec.ask_interval)
        self._rounds = 0
        self._suspects: set[Address] = set()
        self._released: set[Address] = set()
        self._overruns: dict[Address, int] = {}
        self._granted: dict[Address, CreditRequest] = {}
        """What members asked that are not in the view yet, and may be in the next."""

    def connect(self, ports: Ports) -> None:
        self._numbering = ports[Numbering]

    # The sender spends ---------------------------------------------------------------------------

    @property
    def max_message(self) -> int:
        # A larger one would wait for more credits than there ever are.
        return min(self.below.max_message, self.spec.max_credits)

    def room(self, dest: Address | None) -> tuple[int, int]:
        messages, nbytes = self.below.room(dest)
        if dest is not None or messages <= 0:
            return messages, nbytes
        if self.credits > 0:
            return messages, min(nbytes, self.credits)
        # One message may come and wait here, where its own time runs.
        return (1, 0) if self._block_times and self._held is None else (0, 0)

    def down(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.below.down(batch)
        elif self.credits > 0:
            self._send(batch)
        else:
            assert self._held is None
            self._held, self._held_is_due = batch, False
            limit = self._block_times.limit(batch.size or max(map(len, batch.payloads)))
            if limit is not None:
                self.env.timers.set(self, "held", self.env.now + limit)

    def _send(self, batch: Batch) -> None:
        had = self.credits
        self.credits -= batch.nbytes
        self.below.down(batch)
        if had > 0 >= self.credits:
            self._ask()
        elif had <= 0:
            self._debt += batch.nbytes

    def resume(self) -> None:
        """Let go what waits here, then those above; what that makes room for is the next turn."""
        self._again = True
        if self._resuming:
            return
        self._resuming = True
        while self._again:
            self._again = False
            self._let_go()
            self.above.resume()
        self._resuming = False

    def _let_go(self) -> None:
        """Send the message that waits here, if its time is over or there are credits, and room
        below."""
        if self._held is None or not (self._held_is_due or self.credits > 0):
            return
        if self.below.room(None)[0] > 0:
            batch, self._held = self._held, None
            self.env.timers.cancel(self, "held")
            if self.credits <= 0:
                self.env.counters["sent_without_credits"] += len(batch)
            self._send(batch)

    # The sender asks -----------------------------------------------------------------------------

    def _ask(self) -> None:
        self._request = CreditRequest(self._numbering.sent_high, self.spent, 0)
        self._asked_at, self._is_repeated = self.env.now, False
        soonest = MIN_ASK_SHARE * self.spec.ask_interval
        self._pause = min(max(self._rtt.timeout, soonest), self.spec.ask_interval)
        self._debt = 0
        self._rounds += 1
        self.env.counters["credit_rounds"] += 1
        self.missing = set(self.sources) - self._suspects - self._released
        if len(self.sources) > 1:
            self.env.out.send(self._request)
        self.env.timers.set(self, "ask", self.env.now + self._pause)
        own = self.sources.get(self.env.me)
        if own is not None:
            own.asked = self._request
            self._consider(self.env.me, own)
        self._check_answers()

    def _ask_again(self) -> None:
        waited = self.env.now - self._asked_at
        urgent = waited >= self.spec.max_block_time * 0.999
        self._request = CreditRequest(self._request.high, self.spent, int(urgent))
        self.env.counters["credit_requests_repeated"] += 1
        self._is_repeated = True
        others = self.missing - {self.env.me}
        if len(others) > SINGLE_ASKS_MAX:
            self.env.out.send(self._request)
        else:
            for member in sorted(others):
                self.env.out.send(self._request, member)
        self._pause = min(2 * self._pause, self.spec.max_block_time)
        if not urgent:
            self._pause = min(self._pause, self.spec.max_block_time - waited)
        self.env.timers.set(self, "ask", self.env.now + self._pause)

    def on_timer(self, name: str) -> None:
        if name == "held":
            self._held_is_due = True
            self.resume()
        elif self.missing:
            self._ask_again()

    def _answered(self, member: Address) -> None:
        self._overruns.pop(member, None)
        self._released.discard(member)
        if member in self.missing:
            self.missing.discard(member)
            self._check_answers()

    def _check_answers(self) -> None:
        """When all have answered: full credits again, and senders that waited go on."""
        if self.credits > 0 or self.missing:
            return
        if not self._is_repeated:
            self._rtt.sample(self.env.now - self._asked_at)
        for member in self._suspects | self._released:
            self._overruns[member] = self._overruns.get(member, 0) + self.spent
        # What went out past its time is not forgiven: no receiver has answered for it.
        self.credits = self.spec.max_credits - self._debt
        if self.credits <= 0:
            self._ask()
        else:
            self.env.timers.cancel(self, "ask")
            self.resume()

    # The receiver answers ------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, CreditRequest):
            known = self.sources.get(source)
            if known is None:
                self._answer_unknown(frame, source)
                return
            known.asked, known.urgent = frame, frame.urgent != 0
            self._consider(source, known)
        elif isinstance(frame, Credit) and frame.high >= self._request.high:
            self._answered(source)

    def _answer_unknown(self, request: CreditRequest, source: Address) -> None:
        """A member of the next view asks, or a stranger: it is granted one round before the view is
        here. It repeats the request for the next one; when that is urgent, it is granted too."""
        granted = self._granted.get(source)
        if granted is not None and request.high > granted.high:
            if not request.urgent:
                return
            request = CreditRequest(request.high, granted.spent + request.spent, request.urgent)
        if granted is not None or len(self._granted) < GRANTED_MAX:
            self._granted[source] = request
        self.env.out.send(Credit(request.high), source)

    def up(self, batch: Batch) -> None:
        if batch.dest is None:
            source = self.sources.get(batch.sender)
            if source is not None:
                source.came(batch.last, batch.nbytes)
        self.above.up(batch)

    def taken(self, sender: Address, up_to: int) -> None:
        """The application has taken this sender's messages to the group up to here."""
        source = self.sources.get(sender)
        if source is not None:
            source.take(up_to)
            if source.asked is not None:
                self._consider(sender, source)

    def _consider(self, sender: Address, source: Source) -> None:
        """Answer a request, if it is time for it."""
        request = source.asked
        assert request is not None
        is_me = sender == self.env.me
        if source.taken < request.high and (source.waiting or not (source.urgent or is_me)):
            return
        if source.taken < request.high and not is_me:
            self.env.counters["credits_forced"] += 1
        source.answer(request)
        if is_me:
            self._answered(sender)
        else:
            self.env.out.send(Credit(request.high), sender)

    # Members come and go -------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        for member in installation.left:
            self.sources.pop(member, None)
            self._overruns.pop(member, None)
            for members in (self.missing, self._suspects, self._released):
                members.discard(member)
        for member in installation.joined:
            source = self.sources[member] = Source(installation.starts[member])
            if member in self._granted:  # What was sent in these rounds comes now, on top.
                source.answer(self._granted[member])
        self._granted.clear()
        held = self._held
        if held is not None and held.flags & FRAGMENT and set(installation.joined) - {self.env.me}:
            self._held = None  # Its message is begun anew for the newcomers.
        if self.credits <= 0:
            self._check_answers()

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if not suspected:
            self._suspects.discard(member)
        elif member in self.sources and member != self.env.me:
            self._suspects.add(member)
            self.missing.discard(member)
            self._check_answers()

    def positions(self) -> dict[Address, int]:
        """While credits are missing: which members have answered this round (ports.Brake)."""
        if self.credits > 0:
            return {}
        return {
            member: self._rounds - (member in self.missing)
            for member in self.sources
            if member not in self._released
        }

    def release(self, member: Address) -> None:
        """No longer wait for this member, until it answers again (ports.Brake)."""
        if member in self.sources and member != self.env.me:
            self._released.add(member)
            self.missing.discard(member)
            self._check_answers()

    # What others look at -------------------------------------------------------------------------

    @property
    def spent(self) -> int:
        """Bytes sent since the last credits: max_credits and a message at the most, unless
        max_block_times is set."""
        return self.spec.max_credits - self.credits

    @property
    def waits_for(self) -> tuple[Address, ...]:
        """The members without whose answers there are no credits."""
        return tuple(sorted(self.missing)) if self.credits <= 0 else ()

    @property
    def holding(self) -> int:
        """How many messages were accepted and have not left."""
        return 0 if self._held is None else len(self._held)

    @property
    def drained(self) -> bool:
        return self._held is None and self.above.drained

    def allowed(self, receiver: FlowLayer) -> int:
        """The most bytes of this sender that may wait for the application of `receiver`, for
        checks."""
        source = receiver.sources.get(self.env.me)
        forced = 0 if source is None else source.forced
        return self.spent + self._overruns.get(receiver.env.me, 0) + forced

    def snapshot(self) -> FlowSnapshot:
        return FlowSnapshot(
            credits=self.credits,
            missing=tuple(sorted(self.missing)),
            owed=tuple(sender for sender, source in self.sources.items() if source.asked),
            waiting={sender: source.waiting for sender, source in self.sources.items()},
            counted={sender: source.count for sender, source in self.sources.items()},
        )
