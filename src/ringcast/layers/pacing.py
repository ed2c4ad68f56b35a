"""Pacing: a sender goes no faster than the receivers empty their sockets.

For whole large messages to be under way, and one ack a message to be enough, the window has to be
larger than a message. But no socket buffer holds that much at once. So the sender asks now and then
whether all that it sent so far has arrived, and has no more than `max_bytes` under way that is not
answered for. It asks at every third of that, so that it need not stop while answers are on their
way.

It asks few and not all: of fifty receivers, each answering for every two megabytes, the sender
would hear more answers than it sends datagrams. Those that answered last are asked again, the
others take turns; so the slowest set the pace. A receiver that does not answer in time is passed
over, and not asked again until it is heard: to wait for members is the window's work,
and to go on without them is what `SlowMembers` and `LargeMessages` decide. What a receiver loses
all the same is repaired as always.

An answer says that the messages have arrived, not that an application has taken them: that, too, is
the window's work. Requests and answers are the frames of `Flow`, whose place this layer takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Skipped
from ringcast.core.reliable.rtt import RttEstimator
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Numbering, Ports
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.stack.timers import NEVER
from ringcast.core.wire.frames import Credit, CreditRequest, Frame
from ringcast.errors import ConfigError

ASKS_PER_WINDOW = 3
"""How often the sender asks while `max_bytes` are sent."""
PASSED_OVER_TIMEOUTS = 20
"""For this many times `give_up` a member that was passed over is not asked, unless it is heard."""


@protocol(role="flow", under="fragment", former="Pace")
@dataclass(frozen=True, kw_only=True)
class Pacing(Spec):
    """How much may be under way at once."""

    max_bytes: int = 6_000_000
    """Bytes that may be under way to receivers that have not said that they came; what a receiver's
    socket buffer holds. More hides longer round trips, and is lost where buffers are small."""
    asked: int = 4
    """Members that are asked at a time, at the most; the slowest, and the others in turn."""
    give_up: float = 0.5
    """Seconds after which one that has not answered is passed over. Longer than a receiver may get
    no turn: a member that is passed over is sent more than it can take."""

    renamed: ClassVar[Mapping[str, str]] = {"patience": "give_up"}

    def __post_init__(self) -> None:
        for field in ("max_bytes", "asked"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Pacing.{field} is {getattr(self, field)}: give at least 1")
        if self.give_up <= 0:
            raise ConfigError(f"Pacing.give_up is {self.give_up}: give seconds above 0")

    def build(self, env: Env) -> PacingLayer:
        """The layer with these settings."""
        return PacingLayer(env, self)


class _Request:
    """What members were asked, and which have not answered."""

    __slots__ = ("asked_at", "high", "is_repeated", "missing", "pause", "total")

    def __init__(self, high: int, total: int, missing: list[Address], now: float) -> None:
        self.high = high
        self.total = total
        """Bytes that were sent up to the message `high`, in all."""
        self.missing = missing
        self.asked_at = now
        self.pause = 0.0
        """Seconds until it is repeated; twice as long each time."""
        self.is_repeated = False


@dataclass(frozen=True, kw_only=True)
class PacingSnapshot(PartSnapshot):
    """What is in flight."""

    under_way: int
    """Bytes that were sent and are not answered for."""
    asked: tuple[Address, ...]
    """The members that were asked and have not answered."""
    slowest: tuple[Address, ...]
    """The members that answered last; they are asked again."""


class PacingLayer(Layer):
    """Asks as a sender, answers as a receiver."""

    kinds = (CreditRequest, Credit)

    def __init__(self, env: Env, spec: Pacing) -> None:
        super().__init__(env)
        self.spec = spec
        self._step = max(1, spec.max_bytes // ASKS_PER_WINDOW)
        self._sent = self._asked = self._answered = 0
        """Bytes to the group in all: sent, asked about, and answered for."""
        self._requests: deque[_Request] = deque()
        self._turns: deque[Address] = deque()
        """The other members, the next to be asked first."""
        self._slowest: list[Address] = []
        """The members that answered last, the latest first."""
        self._benched: dict[Address, float] = {}
        """The members that were passed over, and until when they are not asked."""
        self._suspects: set[Address] = set()
        self._rtt = RttEstimator(spec.give_up / 5)
        self._came: dict[Address, int] = {}
        """Per other member: the last of its messages that has arrived, with all before it."""
        self._owed: dict[Address, int] = {}
        """Per other member: the message about which it waits for an answer."""

    def connect(self, ports: Ports) -> None:
        self._numbering = ports[Numbering]

    # The sender asks -----------------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """Bytes that are not answered for."""
        return self._sent - self._answered

    @property
    def pausing(self) -> bool:
        return (bool(self._requests) and self._is_full) or self.above.pausing

    @property
    def _is_full(self) -> bool:
        return self.under_way >= self.spec.max_bytes

    @property
    def waits_for(self) -> tuple[Address, ...]:
        """Those without whose answer nothing more is sent."""
        return tuple(self._requests[0].missing) if self._requests and self._is_full else ()

    def room(self, dest: Address | None) -> tuple[int, int]:
        messages, nbytes = self.below.room(dest)
        if dest is not None or not self._turns:
            return messages, nbytes
        left = self.spec.max_bytes - self.under_way
        return (messages, min(nbytes, left)) if left > 0 else (0, 0)

    def down(self, batch: Batch) -> None:
        if batch.dest is None:
            self._sent += batch.nbytes
        self.below.down(batch)
        if self._sent - self._asked >= self._step:
            self._ask()

    def _ask(self) -> None:
        self._asked = self._sent
        now = self.env.now
        request = _Request(self._numbering.sent_high, self._sent, self._choose(), now)
        request.pause = max(self._rtt.timeout, self.spec.give_up / 100)
        self._requests.append(request)
        self._send(request)
        self.env.timers.set_earlier(self, "due", now + request.pause)
        if not request.missing:
            self._advance()

    def _send(self, request: _Request) -> None:
        for member in request.missing:
            self.env.out.send(CreditRequest(request.high, 0, 0), member)

    def _choose(self) -> list[Address]:
        """The members to ask: those that were the slowest, and others in turn."""
        chosen = dict.fromkeys(self._slowest)
        for _ in range(len(self._turns)):
            if len(chosen) >= self.spec.asked:
                break
            member = self._turns[0]
            self._turns.rotate(-1)
            if self._benched.get(member, 0.0) <= self.env.now and member not in self._suspects:
                chosen[member] = None
        if not chosen and self._benched:
            return [min(self._benched, key=self._benched.__getitem__)]
        return list(chosen)

    def _on_answer(self, high: int, member: Address) -> None:
        self._benched.pop(member, None)
        for request in self._requests:
            if request.high <= high and member in request.missing:
                request.missing.remove(member)
                if not request.missing:
                    self._on_last_answer(request, member)
        self._advance()

    def _on_last_answer(self, request: _Request, member: Address) -> None:
        others = [other for other in self._slowest if other != member]
        self._slowest = [member, *others][: self.spec.asked // 2]
        if not request.is_repeated:
            self._rtt.sample(self.env.now - request.asked_at)

    def _advance(self) -> None:
        """Go on, if the oldest requests are answered."""
        before, requests = self._answered, self._requests
        while requests and not requests[0].missing:
            self._answered = requests.popleft().total
        if self._answered > before:
            self.above.resume()

    def on_timer(self, name: str) -> None:
        """Ask again, since frames get lost; in the end pass over those that have not answered."""
        now, due = self.env.now, NEVER
        for request in self._requests:
            until = request.asked_at + self.spec.give_up
            if until <= now:
                for member in list(request.missing):
                    self._pass_over(member)
            elif request.asked_at + request.pause <= now:
                if not request.is_repeated:
                    request.is_repeated = True
                    if request is self._requests[0]:  # The others may wait for the same loss.
                        self._rtt.back_off()
                request.pause *= 2
                self._send(request)
            if request.missing:
                due = min(due, until, request.asked_at + request.pause)
        if due != NEVER:
            self.env.timers.set(self, "due", due)
        self._advance()

    def _pass_over(self, member: Address) -> None:
        self.env.counters["passed_over"] += 1
        self._benched[member] = self.env.now + PASSED_OVER_TIMEOUTS * self.spec.give_up
        self._excuse(member)

    def _excuse(self, member: Address) -> None:
        """No sender waits for this member's answers any more."""
        for request in self._requests:
            if member in request.missing:
                request.missing.remove(member)
        if member in self._slowest:
            self._slowest.remove(member)

    # The receiver answers ------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Credit):
            self._on_answer(frame.high, source)
        elif isinstance(frame, CreditRequest):
            self._on_request(frame.high, source)

    def _on_request(self, high: int, source: Address) -> None:
        is_repeated = self._owed.get(source) == high
        self._owed[source] = high
        if source not in self._came:
            self._answer(source)  # A stranger is not kept waiting.
            return
        self._consider(source)
        if is_repeated and source in self._owed:
            # The first time it may have overtaken the messages; by now the last of them is lost.
            self._numbering.expect(source, high)

    def up(self, batch: Batch) -> None:
        if batch.dest is None and batch.sender in self._came:
            self._came[batch.sender] = batch.last
            if batch.sender in self._owed:
                self._consider(batch.sender)
        self.above.up(batch)

    def skipped(self, event: Skipped) -> None:
        if event.sender in self._came:
            self._came[event.sender] = event.last
            # Who only skips has nothing to say about the pace.
            if self._owed.get(event.sender, event.last + 1) <= event.last:
                del self._owed[event.sender]
        self.above.skipped(event)

    def _consider(self, sender: Address) -> None:
        """Answer, if everything that was asked about has arrived, or what lies behind it."""
        owed = self._owed[sender]
        if self._came[sender] >= owed or self._numbering.arrived(sender) >= owed:
            self._answer(sender)

    def _answer(self, sender: Address) -> None:
        self.env.out.send(Credit(self._owed.pop(sender)), sender)

    # Members come and go -------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        for member in installation.left:
            for table in (self._came, self._owed, self._benched):
                table.pop(member, None)
            self._suspects.discard(member)
            self._excuse(member)
        for member in installation.joined:
            if member != self.env.me:
                self._came[member] = installation.starts[member]
        self._turns = deque(member for member in installation.view if member != self.env.me)
        self._advance()

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self._suspects.add(member)
            self._excuse(member)
            self._advance()
        else:
            self._suspects.discard(member)

    def snapshot(self) -> PacingSnapshot:
        return PacingSnapshot(
            under_way=self.under_way,
            asked=tuple(member for request in self._requests for member in request.missing),
            slowest=tuple(self._slowest),
        )
