"""Large messages as a whole: one ack a message and receiver, and nobody waits for a still receiver
for ever.

For bursts of large messages (10 to 200 MB) to many receivers. A message that is in fragments is
followed here until every receiver has said that it has all of it, or until it is clear who will
not.

The sender notes who has to answer: the members of the view when the last fragment leaves, less
those that leave or are suspected. A receiver answers once, when its application has taken the
message, whatever the number of fragments; that answer is an ack for the window as well, which
sends none of its own meanwhile unless a message is larger than half of it. Each `ack_timeout` the
sender names what it waits for to those it waits for; they ask for what they lack, or answer that
they have it, taken or not. After `attempts` of that the sender lets the multicast forget the
message, no longer waits for those members until they have caught up, and tells its application who
they are.

A receiver starts a timer when it first asks for a message. When what it asked for has not come
within `receive_timeout`, it asks no more: the message is skipped, its late fragments are dropped,
the application is told in its place, and what follows is delivered in order. The same happens to
whom the sender has forgotten the message: the sender answers its request with what it no longer
has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT, Batch
from ringcast.core.codec import HEADER_SIZE
from ringcast.core.env import Env
from ringcast.core.events import Skipped, Undelivered
from ringcast.core.fragments import WHOLE, read_header
from ringcast.core.frames import Frame, Unacked, Whole
from ringcast.core.part import Installation, Layer, Spec
from ringcast.core.ports import Ports
from ringcast.core.timers import NEVER
from ringcast.errors import ConfigError

REMEMBERED = 1_024
"""Messages of one sender whose acks are remembered, so that a lost one can be given again."""


@dataclass(frozen=True, kw_only=True)
class Large(Spec):
    """How long members wait for each other with large messages."""

    role: ClassVar[str] = "large"

    ack_timeout: float = 1.0
    """Seconds between the last fragment and the first reminder, and between two reminders. Longer
    than it takes to repair what was lost at the end of a message."""
    attempts: int = 5
    """Reminders before the sender goes on without those that have not answered: a still receiver
    costs the others ack_timeout × (attempts + 1) seconds of the sender's memory, and nothing
    else."""
    receive_timeout: float = 10.0
    """Seconds after its first request for a message at which a receiver stops asking and skips
    it."""
    max_unacked: int = 1_024
    """Messages that the sender follows at once; with one more the oldest counts as timed out."""
    max_waiting_bytes: int = 512_000_000
    """Bytes of one sender's whole messages that may wait for the application; one that comes on top
    of that is skipped. Only a sender that no longer waits for this member can bring it there."""

    def __post_init__(self) -> None:
        for field in ("ack_timeout", "receive_timeout"):
            if getattr(self, field) <= 0:
                raise ConfigError(f"Large.{field} is {getattr(self, field)}: give seconds above 0")
        for field in ("attempts", "max_unacked", "max_waiting_bytes"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Large.{field} is {getattr(self, field)}: give at least 1")

    def build(self, env: Env) -> LargeLayer:
        """The layer with these settings."""
        return LargeLayer(env, self)


class _Sent:
    """A message of this member that not everybody has answered."""

    __slots__ = ("behind", "due", "last", "missing", "reminders")

    def __init__(self, last: int, missing: set[Address], due: float) -> None:
        self.last = last
        """The seqno of its last fragment, which is its name."""
        self.missing = missing
        self.behind: set[Address] = set()
        """Those that have it, and whose applications have not taken it."""
        self.due = due
        self.reminders = 0

    def answered(self, member: Address, is_taken: bool) -> None:
        """A member has it, or is waited for no longer."""
        if is_taken:
            self.behind.discard(member)
        elif member in self.missing:
            self.behind.add(member)
        self.missing.discard(member)


class _Received:
    """What this receiver remembers of one sender's large messages."""

    __slots__ = ("nbytes", "taken", "waiting", "whole")

    def __init__(self, taken: int) -> None:
        self.taken = taken
        """Up to where the application has taken its messages."""
        self.whole: deque[int] = deque(maxlen=REMEMBERED)
        """The messages that are here, or were."""
        self.waiting: deque[tuple[int, int]] = deque()
        """Those that the application has not taken, with their sizes."""
        self.nbytes = 0


class LargeLayer(Layer):
    """Follows large messages, out and in (ports.Tracker)."""

    kinds = (Whole, Unacked)

    def __init__(self, env: Env, spec: Large) -> None:
        super().__init__(env)
        self.spec = spec
        self.unacked: dict[int, _Sent] = {}
        """By the seqno of the last fragment, in the order of sending."""
        self._received: dict[Address, _Received] = {}
        """Of every other member of the view."""
        self._suspects: set[Address] = set()
        self._requests: dict[Address, tuple[int, float]] = {}
        """Per sender the seqno that was asked for first and has not come, and when it is given
        up."""
        self._given_up: dict[Address, int] = {}
        """Per sender the end of the last message that was given up; parts of it may yet come."""

    def connect(self, ports: Ports) -> None:
        assert ports.numbering is not None
        self._control, self._numbering = ports.control, ports.numbering

    # The sender waits for acks ------------------------------------------------------------------

    def sent(self, last: int) -> None:
        missing = set(self._received) - self._suspects
        if not missing:
            return
        due = self.env.now + self.spec.ack_timeout
        self.unacked[last] = _Sent(last, missing, due)
        self.env.timers.set_earlier(self, "remind", due)
        if len(self.unacked) > self.spec.max_unacked:
            self._go_on_without(next(iter(self.unacked.values())))

    def _acked(self, message: _Sent, member: Address, is_taken: bool = True) -> None:
        message.answered(member, is_taken)
        if not message.missing and not message.behind:
            del self.unacked[message.last]
            self._numbering.forget(message.last, ())

    def _remind(self) -> None:
        now, named = self.env.now, dict[Address, list[int]]()
        for message in list(self.unacked.values()):
            if message.due > now:
                continue
            if message.reminders == self.spec.attempts:
                self._go_on_without(message)
                continue
            message.reminders += 1
            message.due = now + self.spec.ack_timeout
            for member in message.missing:
                named.setdefault(member, []).append(message.last)
        most = max(1, (self.env.mtu - HEADER_SIZE - 64) // 8)
        for member in sorted(named):
            self.env.counters["reminders"] += 1
            self.env.out.send(Unacked(tuple(named[member][:most])), member)
        if self.unacked:
            due = min(message.due for message in self.unacked.values())
            self.env.timers.set(self, "remind", due)

    def _go_on_without(self, message: _Sent) -> None:
        del self.unacked[message.last]
        members = tuple(sorted(message.missing))
        if members:
            self.env.counters["undelivered"] += len(members)
            self._control.emit(Undelivered(message.last, members))
        self._numbering.forget(message.last, [*members, *sorted(message.behind)])

    # The receiver acks --------------------------------------------------------------------------

    def up(self, batch: Batch) -> None:
        received = self._received.get(batch.sender) if batch.flags & WHOLE else None
        if received is None or batch.dest is not None:
            self.above.up(batch)
            return
        seqno, limit = batch.last, self.spec.max_waiting_bytes
        if received.waiting and received.nbytes + batch.nbytes > limit:
            self.env.counters["skipped_application_behind"] += 1
            reason = f"{received.nbytes:,} bytes wait for the application already"
            self._control.emit(Skipped(batch.sender, seqno, seqno, reason))
            return
        received.waiting.append((seqno, batch.nbytes))
        received.nbytes += batch.nbytes
        received.whole.append(seqno)
        self.above.up(batch)

    def taken(self, sender: Address, up_to: int) -> None:
        """The application has taken this sender's messages to the group up to here."""
        received = self._received.get(sender)
        if received is None:
            return
        received.taken = up_to
        while received.waiting and received.waiting[0][0] <= up_to:
            seqno, nbytes = received.waiting.popleft()
            received.nbytes -= nbytes
            self.env.out.send(Whole(seqno, up_to), sender)
            self._numbering.answered(sender, up_to)

    def on_frame(self, frame: Frame, source: Address) -> None:
        received = self._received.get(source)
        if received is None:
            self.env.counters["dropped_not_member"] += 1
        elif isinstance(frame, Whole):
            self._numbering.acked(source, frame.taken)
            message = self.unacked.get(frame.seqno)
            if message is None:
                self.env.counters["late_acks"] += 1
            else:
                self._acked(message, source, frame.taken >= frame.seqno)
        elif isinstance(frame, Unacked):
            for seqno in frame.seqnos:
                if seqno in received.whole:
                    self.env.out.send(Whole(seqno, received.taken), source)
                else:
                    self._numbering.expect(source, seqno)

    # The receiver gives up ----------------------------------------------------------------------

    def requested(self, sender: Address, first: int) -> None:
        known = self._requests.get(sender)
        if known is None or not self._numbering.lacks(sender, known[0]):
            due = self.env.now
            if first > self._given_up.get(sender, 0):
                due += self.spec.receive_timeout
            self._requests[sender] = (first, due)
            self.env.timers.set_earlier(self, "give up", due)

    def _give_up(self) -> None:
        now = self.env.now
        for sender, (seqno, due) in list(self._requests.items()):
            if due <= now:
                del self._requests[sender]
                if self._numbering.lacks(sender, seqno):
                    end = self._end_of_message(sender)
                    self._given_up[sender] = max(self._given_up.get(sender, 0), end or 0)
                    reason = f"it did not come within {self.spec.receive_timeout:g} seconds"
                    self._numbering.give_up(sender, end, reason)
        due = min((due for _, due in self._requests.values()), default=NEVER)
        if due != NEVER:
            self.env.timers.set(self, "give up", due)

    def _end_of_message(self, sender: Address) -> int | None:
        """The last seqno of the large message that the first gap lies in; None if it lies in
        none."""
        run = self._numbering.behind_gap(sender)
        header = read_header(run.payloads[0]) if run is not None and run.flags & FRAGMENT else None
        if run is None or header is None or header.index == 0:
            return None
        return run.first - header.index + header.count - 1

    # ---------------------------------------------------------------------------------------------

    def on_timer(self, name: str) -> None:
        if name == "remind":
            self._remind()
        else:
            self._give_up()

    def on_view(self, installation: Installation) -> None:
        for member in installation.left:
            self._received.pop(member, None)
            self._requests.pop(member, None)
            self._given_up.pop(member, None)
            self._suspects.discard(member)
            self._excuse(member)
        for member in installation.joined:
            if member != self.env.me:
                self._received[member] = _Received(installation.starts[member])

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self._suspects.add(member)
            self._excuse(member)
        else:
            self._suspects.discard(member)

    def _excuse(self, member: Address) -> None:
        for message in list(self.unacked.values()):
            if member in message.missing or member in message.behind:
                self._acked(message, member)

    def snapshot(self) -> dict[str, object]:
        return {
            "unacked": {
                message.last: [str(member) for member in sorted(message.missing | message.behind)]
                for message in self.unacked.values()
            },
            "waiting": {str(sender): r.nbytes for sender, r in self._received.items() if r.nbytes},
        }
