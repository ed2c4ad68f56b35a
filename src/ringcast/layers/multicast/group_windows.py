"""The windows of one view: what this member sent, and what arrived from each other member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.digest import Digest, Marks
from ringcast.core.model.view import NO_VIEW
from ringcast.core.reliable.windows import ReceiveWindow, SendWindow
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation
from ringcast.core.stack.snapshot import PartSnapshot, ReceivedMarks, SentMarks
from ringcast.core.wire.frames import Data
from ringcast.layers.multicast.settings import MulticastSpec


@dataclass(frozen=True, kw_only=True)
class MulticastSnapshot(PartSnapshot):
    """The windows of messages to the group."""

    sent: SentMarks
    """This member's own messages."""
    windows: Mapping[Address, ReceivedMarks]
    """By sender: the messages of the others."""


class GroupWindows:
    """The state that the components of a reliable multicast share."""

    __slots__ = ("_env", "_keep", "departed", "sent", "size", "start", "view", "windows")

    def __init__(self, env: Env, spec: MulticastSpec, keep: bool) -> None:
        """keep: whether receivers keep delivered messages for other members."""
        self._env = env
        self._keep = keep
        self.view = NO_VIEW
        self.start = 0
        """The last own seqno before this view."""
        self.size = 0
        self.sent = SendWindow(spec.capacity, spec.max_bytes)
        self.windows: dict[Address, ReceiveWindow] = {}
        """Of every other member of the view."""
        self.departed: dict[Address, ReceiveWindow] = {}
        """Of the members that left with this view, for those that still lack their messages."""

    @property
    def is_alone(self) -> bool:
        """Whether this member has the view for itself."""
        return not self.windows

    def is_member(self, address: Address) -> bool:
        """Whether this is the address of a member of the view, this one included."""
        return address in self.windows or address == self._env.me

    def install(self, installation: Installation) -> None:
        """Make the windows those of a new view."""
        view, me = installation.view, self._env.me
        self.view, self.size = view.id, len(view)
        self.start = min(installation.starts[me], self.sent.high)  # A broken member may err.
        self.departed = {}
        for member in installation.left:
            window = self.windows.pop(member, None)
            if window is not None and window.keep:
                self.departed[member] = window
        for member in installation.joined:
            if member != me:
                start = installation.starts[member]
                self.windows[member] = ReceiveWindow(
                    self.sent.capacity,
                    start,
                    self._keep,
                    self._env.counters,
                    self.sent.max_bytes,
                )
        assert self.windows.keys() == set(view.members) - {me}
        assert self.start <= self.sent.high

    def purge_sent(self, up_to: int) -> bool:
        """Free own messages that all members have; whether there were any."""
        sent = self.sent
        if not sent.purge(up_to):
            return False
        if self._env.tracer is not None:
            self._env.tracer.purged(self.view, sent.low, sent.delivered, sent.high)
        return True

    def frame(self, run: Batch) -> Data:
        """The frame that carries a run of this member, or of one that is gone."""
        start, low = self.start, self.sent.low
        if run.sender != self._env.me:
            start, low = run.last, 0  # Everything of a departed sender belongs to a former view.
        return Data(
            self.view,
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

    def digest(self) -> Digest:
        """The marks of each sender's messages here, this member's own included."""
        windows: dict[Address, ReceiveWindow | SendWindow] = {
            self._env.me: self.sent,
            **self.windows,
        }
        return Digest({m: Marks(w.low, w.delivered, w.high) for m, w in windows.items()})

    def handed(self) -> dict[Address, int]:
        """Per member of the view: the last of its messages that was handed up here."""
        handed = {member: window.handed for member, window in self.windows.items()}
        return handed | {self._env.me: self.sent.high}

    def snapshot(self) -> MulticastSnapshot:
        """Where the windows stand."""
        windows = {member: window.marks() for member, window in self.windows.items()}
        return MulticastSnapshot(sent=self.sent.marks(), windows=windows)
