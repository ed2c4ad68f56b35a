"""Large messages as a whole: one ack per message and receiver, and no sender waits for a still
receiver for ever.

For bursts of large messages (10 to 200 MB) to many receivers. This layer follows a message in
fragments until every receiver has said that it has all of it, or it is clear which will not.

The sender notes which members have to answer: those of the view when the last fragment leaves, less
those that leave or are suspected. A receiver answers once, when its application has taken the
message, whatever the number of fragments; that answer is an ack for the window as well, which
sends none of its own meanwhile unless a message is larger than half of it. Each `ack_timeout` the
sender names the message to the receivers that it waits for; they ask for what they lack, or answer
that they have it, taken or not. After `attempts` of that the sender lets the multicast forget the
message, no longer waits for those members until they have caught up, and tells its application
their names.

A receiver starts a timer for each large message when it first requests a part of it. When what it
requested has not arrived within `receive_timeout`, it requests no more of it: the message is
skipped, its late fragments are dropped, the application is told in its place, and what follows is
delivered in order. Only messages that are known to be large, by a fragment that has arrived, are
given up by this timer. Small messages, and messages of which nothing has arrived, are requested
until the sender answers that it no longer has them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, Batch
from ringcast.core.model.events import Skipped, Undelivered
from ringcast.core.model.ranges import RangeSet
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Spec
from ringcast.core.stack.ports import Control, Numbering, Ports, Taker, Tracker
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.stack.timers import NEVER
from ringcast.core.wire.fields import ITEMS_MAX
from ringcast.core.wire.fragments import WHOLE, read_header
from ringcast.core.wire.frames import Frame, Unacked, Whole
from ringcast.core.wire.layout import HEADER_SIZE
from ringcast.errors import ConfigError

REMEMBERED = 1_024
"""Messages of one sender whose acks are remembered, so that a lost one can be given again."""


@protocol(
    role="large",
    offers=(Tracker, Taker),
    needs={"fragment": "fragments below it, since it acks whole messages"},
    former="Large",
)
@dataclass(frozen=True, kw_only=True)
class LargeMessages(Spec):
    """How long members wait for each other with large messages. Each receiver acks a message once,
    if it fits the multicast's window (max_bytes, flight_bytes and capacity). A larger one costs an
    ack for each half of the window, since the sender could not go on with a full one. Where
    datagrams are packets (up to 10,000 bytes), receivers also ack what has arrived, every 2 ms at
    most: congestion control needs that."""

    ack_timeout: float = 1.0
    """Seconds between the last fragment and the first reminder, and between two reminders. Longer
    than it takes to repair what was lost at the end of a message."""
    attempts: int = 5
    """Reminders before the sender goes on without those that have not answered: a still receiver
    costs the others ack_timeout × (attempts + 1) seconds of the sender's memory, and nothing
    else."""
    receive_timeout: float = 10.0
    """Seconds after its first request for a part of a large message at which a receiver stops
    asking and skips that message, if the part has not come. Small messages are never skipped."""
    max_unacked: int = 1_024
    """Messages that the sender follows at once; with one more the oldest counts as timed out."""
    max_waiting_bytes: int = 512_000_000
    """Bytes of one sender's whole messages that may wait for the application; one that comes on top
    of that is skipped. Only a sender that no longer waits for this member can bring it there."""

    def __post_init__(self) -> None:
        for field in ("ack_timeout", "receive_timeout"):
            if getattr(self, field) <= 0:
                raise ConfigError(
                    f"LargeMessages.{field} is {getattr(self, field)}: give seconds above 0"
                )
        for field in ("attempts", "max_unacked", "max_waiting_bytes"):
            if getattr(self, field) < 1:
                raise ConfigError(
                    f"LargeMessages.{field} is {getattr(self, field)}: give at least 1"
                )

    def build(self, env: Env) -> LargeMessagesLayer:
        """The layer with these settings."""
        return LargeMessagesLayer(env, self)


class _Sent:
    """A message of this member that not all members have answered."""

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


class _Late:
    """A large message of which a part was requested."""

    __slots__ = ("asked", "due", "first", "is_given_up", "last")

    def __init__(self, first: int, last: int, asked: int, due: float) -> None:
        self.first, self.last = first, last
        self.asked = asked
        """The part whose arrival the deadline is about."""
        self.due = due
        self.is_given_up = False


@dataclass(frozen=True, kw_only=True)
class LargeSnapshot(PartSnapshot):
    """Large messages that are followed as a whole."""

    unacked: Mapping[int, tuple[Address, ...]]
    """By the last seqno of a message of this member: the members that have not acked it."""
    waiting: Mapping[Address, int]
    """By sender: bytes of whole messages that wait for the application."""


class LargeMessagesLayer(Layer):
    """Follows large messages, out and in (ports.Tracker)."""

    kinds = (Whole, Unacked)

    def __init__(self, env: Env, spec: LargeMessages) -> None:
        super().__init__(env)
        self.spec = spec
        self.unacked: dict[int, _Sent] = {}
        """By the seqno of the last fragment, in the order of sending."""
        self._received: dict[Address, _Received] = {}
        """Of every other member of the view."""
        self._suspects: set[Address] = set()
        self._begun: dict[Address, tuple[int, int]] = {}
        """Per sender: the large message that its last fragment in order belongs to."""
        self._late: dict[Address, list[_Late]] = {}
        """Per sender, by seqno: the large messages that parts were requested of. Those that were
        given up stay for a while, since later parts of them may be missing as well."""

    def connect(self, ports: Ports) -> None:
        self._control, self._numbering = ports[Control], ports[Numbering]

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
        most = max(1, min(ITEMS_MAX, (self.env.mtu - HEADER_SIZE - 64) // 8))
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
            self._numbering.acked_by_large(sender, up_to)

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

    def begun(self, sender: Address, first: int, last: int) -> None:
        self._begun[sender] = (first, last)

    def requested(self, sender: Address, wanted: RangeSet) -> None:
        for first, last in wanted:
            message = self._late_at(sender, first)
            if message is not None:
                self._requested_again(sender, message, first)
            if message is None or message.last < last:
                for span in self._spans_beside(sender, first):
                    self._note_late(sender, first, *span)

    def _late_at(self, sender: Address, seqno: int) -> _Late | None:
        late = self._late.get(sender, [])
        place = bisect_right(late, seqno, key=lambda message: message.first)
        return late[place - 1] if place and late[place - 1].last >= seqno else None

    def _requested_again(self, sender: Address, message: _Late, seqno: int) -> None:
        if message.is_given_up:
            self.env.timers.set_earlier(self, "give up", self.env.now)
        elif not self._numbering.lacks(sender, message.asked, message.asked):
            message.asked, message.due = seqno, self.env.now + self.spec.receive_timeout

    def _spans_beside(self, sender: Address, seqno: int) -> list[tuple[int, int]]:
        """The large messages that the gap around this seqno cuts into."""
        spans = [self._begun[sender]] if sender in self._begun else []
        for run in self._numbering.beside_gap(sender, seqno):
            header = read_header(run.payloads[0]) if run.flags & FRAGMENT else None
            if header is not None:
                first = run.first - header.index
                spans.append((first, first + header.count - 1))
        return spans

    def _note_late(self, sender: Address, requested: int, first: int, last: int) -> None:
        asked = max(requested, first)
        if asked > last or self._late_at(sender, asked) is not None:
            return
        if self._numbering.lacks(sender, asked, asked):
            due = self.env.now + self.spec.receive_timeout
            late = self._late.setdefault(sender, [])
            insort(late, _Late(first, last, asked, due), key=lambda message: message.first)
            self.env.timers.set_earlier(self, "give up", due)

    def _give_up(self) -> None:
        now, deadline = self.env.now, NEVER
        for sender, late in list(self._late.items()):
            for message in late:
                if message.due <= now or message.is_given_up:
                    self._give_up_late(sender, message)
            given_up = [message for message in late if message.is_given_up][-REMEMBERED:]
            open_ = [message for message in late if message.due != NEVER]
            self._late[sender] = sorted([*given_up, *open_], key=lambda message: message.first)
            deadline = min([deadline, *(message.due for message in open_)])
        if deadline != NEVER:
            self.env.timers.set(self, "give up", deadline)

    def _give_up_late(self, sender: Address, message: _Late) -> None:
        """The time of a message is over: give it up, or forget about it if the part has arrived."""
        if message.is_given_up or self._numbering.lacks(sender, message.asked, message.asked):
            message.is_given_up = True
            reason = self._timed_out
            self._numbering.give_up(sender, message.first, message.last, reason)
        message.due = NEVER

    @property
    def _timed_out(self) -> str:
        return f"it did not come within {self.spec.receive_timeout:g} seconds"

    def skipped(self, event: Skipped) -> None:
        message = self._late_at(event.sender, event.first)
        if message is not None and message.is_given_up:
            event = replace(event, reason=self._timed_out)
        self.above.skipped(event)

    # ---------------------------------------------------------------------------------------------

    def on_timer(self, name: str) -> None:
        if name == "remind":
            self._remind()
        else:
            self._give_up()

    def on_view(self, installation: Installation) -> None:
        for member in installation.left:
            self._received.pop(member, None)
            self._late.pop(member, None)
            self._begun.pop(member, None)
            self._suspects.discard(member)
            self._excuse(member)
        if installation.joined:  # Senders begin anew what they are sending.
            self._late.clear()
            self._begun.clear()
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

    def snapshot(self) -> LargeSnapshot:
        messages = self.unacked.values()
        return LargeSnapshot(
            unacked={m.last: tuple(sorted(m.missing | m.behind)) for m in messages},
            waiting={sender: r.nbytes for sender, r in self._received.items() if r.nbytes},
        )
