"""What every reliable multicast does: number, store and send; put in order and hand up; ask and
answer.

The rules that hold the rest together:

- Number, store and send are one step, so the wire order is the seqno order. A message that has its
  number is kept until everybody has it.
- Own messages are handed up from here and never taken from the network.
- Each run carries its sender's view and where that view begins in the sender's seqnos. A receiver
  hands up nothing of a view that it has not installed; so a message is delivered in the view it was
  sent in, or not at all.
- Before a view change the sender stops (`freeze`), and everybody gets what everybody else has
  (`aim`): messages of the living up to where they stopped, messages of the departed up to the
  furthest that a survivor holds.

How long messages are kept, and who says that everybody has them, is what the subclasses differ in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.digest import Digest, Marks
from ringcast.core.env import Env
from ringcast.core.events import Skipped
from ringcast.core.frames import Data, Frame, Last, Nak
from ringcast.core.part import Installation
from ringcast.core.ports import Ports
from ringcast.core.ranges import RangeSet
from ringcast.core.repair import Pace, Repair
from ringcast.core.view import ViewId
from ringcast.core.windows import Hole, ReceiveWindow, SendWindow
from ringcast.layers.multicast.announcing import Announcing
from ringcast.layers.multicast.answers import Answers
from ringcast.layers.multicast.parking import Parking
from ringcast.layers.multicast.patience import GONE
from ringcast.layers.multicast.settings import MulticastSpec

LATER_MAX = 16
"""Later views of one sender that are remembered."""


class ReliableMulticast(Announcing):
    """The layer that gets every message of the group to every member, in its sender's order."""

    kinds: ClassVar[tuple[type[Frame], ...]] = (Data, Nak, Last)

    def __init__(self, env: Env, spec: MulticastSpec, keep: bool) -> None:
        super().__init__(env)
        self.spec: MulticastSpec = spec
        self.sent = SendWindow(spec.capacity, spec.max_bytes)
        self.windows: dict[Address, ReceiveWindow] = {}
        """Of every other member of the view."""
        self._keep = keep
        self._size = 0
        self._departed: dict[Address, ReceiveWindow] = {}
        self._later: dict[Address, dict[ViewId, int]] = {}
        """Views that members were in when they sent what came too early, and where those begin."""
        self._repairs: dict[Address, Repair] = {}
        self._answers = Answers(env, spec)
        self._parking = Parking(spec.park_frames)

    def connect(self, ports: Ports) -> None:
        self._control = ports.control
        self._membership = ports.membership
        self._tracker = ports.tracker

    # Sending -------------------------------------------------------------------------------------

    def room(self, dest: Address | None) -> tuple[int, int]:
        if dest is not None:
            return self.below.room(dest)
        return (0, 0) if self._frozen else self.sent.room()

    def down(self, batch: Batch) -> None:
        if batch.dest is not None:
            self.below.down(batch)
            return
        assert not self._frozen
        batch.sent_at = self.env.clock
        self.sent.append(batch)
        self.env.out.send(self._frame(batch))
        if self.env.tap is not None:
            self.env.tap.sent(self._view, batch)
        if self.spec.loopback:
            self.above.up(batch)
        else:
            self.deliver(self.env.me, self.sent.high, batch.nbytes)
        self._on_sent(self._tail)

    def _frame(self, run: Batch) -> Data:
        start, low = self._start, self.sent.low
        if run.sender != self.env.me:
            start, low = run.last, 0  # Of a departed sender: everything belongs to a former view.
        return Data(
            self._view,
            start,
            run.sender,
            run.first,
            low,
            run.sent_at,
            run.flags,
            run.payloads,
            run.nbytes,
            run.size,
        )

    def _purge_sent(self, up_to: int) -> bool:
        """Free own messages that everybody has; whether there were any."""
        if not self.sent.purge(up_to):
            return False
        if self.env.tap is not None:
            self.env.tap.purged(self._view, self.sent.low, self.sent.delivered, self.sent.high)
        return True

    # Receiving -----------------------------------------------------------------------------------

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Data):
            self._on_data(frame, source)
        elif isinstance(frame, Nak):
            self._on_nak(frame, source)
        elif isinstance(frame, Last):
            self._on_last(frame, source)

    def _on_data(self, frame: Data, source: Address) -> None:
        origin = frame.origin
        window = self.windows.get(origin)
        if window is None:
            self._on_unknown(frame, source)
            return
        if source != origin:
            if origin not in self._holders:
                self.env.counters["dropped_on_behalf"] += 1
                return
        elif frame.view != self._view and not self._admit(origin, window, frame):
            self.env.counters["dropped_old_view"] += 1
            return
        if frame.view == self._view:  # In a later view the sender no longer waits for this member.
            self._forget_stable(window, frame.low)
        run = Batch(
            origin,
            frame.payloads,
            frame.nbytes,
            first=frame.first,
            flags=frame.flags,
            sent_at=frame.sent_at,
            size=frame.size,
        )
        in_order = window.handed == window.high
        self._hand_up(origin, window.put(run))
        if not in_order or window.gaps:
            self._look(origin, window)
        self._on_arrived(origin, window, run.nbytes)
        self._check_aims()

    def _admit(self, sender: Address, window: ReceiveWindow, frame: Data | Last) -> bool:
        """Whether messages sent in another view than this member's may be stored."""
        if frame.view.number < self._view.number:
            return False  # All of them were handed up before this view was installed.
        later = self._later.setdefault(sender, {})
        if len(later) < LATER_MAX:
            later[frame.view] = frame.start
        if sender in self._aims:
            return True  # The view that waits says where this one ends: nothing is to be guessed.
        end, bound = self._end_of_view(frame.view, frame.start, window), window.held_at
        window.hold(end if bound is None else min(end, bound))
        return True

    def _end_of_view(self, view: ViewId, start: int, window: ReceiveWindow) -> int:
        # Where this view ends is known only from the one right after it: a sender that is further
        # ahead has sent messages of views in between as well.
        return start if view.number == self._view.number + 1 else window.handed

    def _hold_later(self, sender: Address, window: ReceiveWindow) -> None:
        """Hand up, of what came too early for the former view, only what was sent in this one."""
        known = self._later.pop(sender, {})
        now, number = self._view, self._view.number
        later = {
            view: start for view, start in known.items() if view != now and view.number >= number
        }
        window.hold(None)
        if later:
            self._later[sender] = later
            window.hold(min(self._end_of_view(*item, window) for item in later.items()))

    def _on_unknown(self, frame: Data, source: Address) -> None:
        """Messages of somebody who is not in the view: perhaps of a view that is on its way."""
        if frame.view.number > self._view.number and source == frame.origin:
            if self._parking.park(frame, source):
                return
            self.env.counters["dropped_parking_full"] += 1
            return
        self.env.counters["dropped_not_member"] += 1
        if source not in self.windows:
            self._membership.stranger(source)

    def _on_last(self, frame: Last, source: Address) -> None:
        window = self.windows.get(source)
        if window is None:
            return
        high = frame.high
        if frame.view != self._view:
            if not self._admit(source, window, frame):
                return
            high = min(high, window.held_at or 0)
        low = min(frame.low, self._aims.get(source, frame.low))
        if window.handed < low <= frame.high and frame.view in (self._view, self._next):
            # Members of the view that waits still keep for this one what they keep at all.
            self.env.counters["skipped"] += min(low, window.high) - window.handed
            window.skip(low)
            self._hand_up(source, window.hand())
        if frame.view == self._view:  # In a later view the sender no longer waits for this member.
            self._forget_stable(window, frame.low)
        window.expect(high)
        self._look(source, window)
        if frame.low < frame.high:
            self._on_announced(source, window)
        self._check_aims()

    def _hand_up(self, origin: Address, runs: list[Batch | Hole], reason: str = GONE) -> None:
        for run in runs:
            if isinstance(run, Hole):
                self.above.skipped(Skipped(origin, run.first, run.last, reason))
            else:
                self.above.up(run)

    def deliver(self, sender: Address, up_to: int, nbytes: int) -> None:
        """The application has taken this sender's messages up to here."""
        if sender == self.env.me:
            self.sent.deliver(up_to)
            self._on_self_delivered()
            return
        window = self.windows.get(sender)
        if window is not None:
            window.deliver(up_to)
            self._on_delivered(sender, window, nbytes)
            if self._aiming:
                window.reach(self._aims.get(sender, 0))
                window.expect(self._aims.get(sender, 0))
                self._look(sender, window)

    # Asking and answering ------------------------------------------------------------------------

    def _look(self, origin: Address, window: ReceiveWindow) -> None:
        """Note gaps, so that they are asked for when their time comes."""
        repair = self._repairs.get(origin)
        if repair is None:
            if not window.gaps:
                return
            pace = Pace(self.spec.request_delay, self.spec.xmit_interval)
            repair = self._repairs[origin] = Repair(window, pace)
        spread = self.env.rng.random() * self.spec.request_delay if self._size > 8 else 0.0
        self._note(repair, spread)

    def _open_repairs(self) -> Iterable[tuple[Address, Repair]]:
        return self._repairs.items()

    def _request(self, source: Address, wanted: RangeSet) -> None:
        if self.env.tap is not None:
            self.env.tap.requested(source, wanted)
        self.env.out.send(Nak(source, wanted), self._whom_to_ask(source))
        if self._tracker is not None:
            self._tracker.requested(source, wanted.first)

    def _on_nak(self, frame: Nak, source: Address) -> None:
        if frame.origin == self.env.me:
            runs = self.sent.get(frame.ranges)
            if frame.ranges.first <= self.sent.low:
                self.env.out.send(self._last(), source)
        else:
            window = self._departed.get(frame.origin) or self.windows.get(frame.origin)
            runs = [] if window is None else window.get(frame.ranges)
        for run, target in self._answers.choose(runs, source):
            self.env.counters["resent"] += len(run)
            if self.env.tap is not None:
                self.env.tap.resent(run, target)
            self.env.out.send(self._frame(run), target)

    # Views ---------------------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        return not self.sent.outstanding and self.above.drained

    def on_view(self, installation: Installation) -> None:
        view, me = installation.view, self.env.me
        self._view, self._size, self._start = view.id, len(view), installation.starts[me]
        self._departed = {}
        self._thaw()
        for member in installation.left:
            self._later.pop(member, None)
            window = self.windows.pop(member, None)
            self._repairs.pop(member, None)
            if window is not None and window.keep:
                self._departed[member] = window
        for member in installation.joined:
            if member != me:
                start = installation.starts[member]
                self.windows[member] = ReceiveWindow(self.spec.capacity, start, self._keep)
        self._on_members(installation)
        for member, window in self.windows.items():
            self._hold_later(member, window)
            self._hand_up(member, window.hand())
            if window.gaps:
                self._look(member, window)
        for frame, source in self._parking.take(view.id):
            self._on_data(frame, source)
        self._arm()
        self.above.resume()

    def digest(self) -> Digest:
        """How far each sender's messages have come here, this member's own included."""
        windows: dict[Address, ReceiveWindow | SendWindow] = {
            self.env.me: self.sent,
            **self.windows,
        }
        return Digest({m: Marks(w.low, w.delivered, w.high) for m, w in windows.items()})

    def handed(self) -> dict[Address, int]:
        handed = {member: window.handed for member, window in self.windows.items()}
        return handed | {self.env.me: self.sent.high}

    def snapshot(self) -> dict[str, object]:
        sent = self.sent
        return {
            "sent": {
                "low": sent.low,
                "delivered": sent.delivered,
                "high": sent.high,
                "nbytes": sent.nbytes,
            },
            "windows": {
                str(member): {
                    "low": window.low,
                    "delivered": window.delivered,
                    "handed": window.handed,
                    "high": window.high,
                    "missing": window.gaps.count,
                    "nbytes": window.nbytes,
                }
                for member, window in self.windows.items()
            },
        }

    # What subclasses differ in -------------------------------------------------------------------

    def _on_self_delivered(self) -> None:
        """The own application has taken own messages."""

    def _on_arrived(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        """Messages of another member have come, in order or not."""

    def _on_delivered(self, sender: Address, window: ReceiveWindow, nbytes: int) -> None:
        """The application has taken messages of another member."""

    def _on_announced(self, sender: Address, window: ReceiveWindow) -> None:
        """A sender has announced how far it is, since it knows of somebody who is behind."""

    def _on_members(self, installation: Installation) -> None:
        """The members have changed; windows are in place."""

    def _forget_stable(self, window: ReceiveWindow, low: int) -> None:
        """The sender says that everybody has its messages up to `low`."""
