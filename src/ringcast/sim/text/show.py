"""The space-time log: datagrams with sender, receivers and losses, and deliveries, one per line.

      0.2010  a → all    DATA 1-3                                     lost: b
      0.2015  c          delivers a 1-3
      0.3020  b → a      NAK of a 1-3

A line with an arrow is a datagram when it leaves; what becomes of it stands on its right. A line
without one is what an application was given, or what was done to a member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ringcast.core.model.address import Address
from ringcast.core.model.events import Event
from ringcast.core.wire.frames import Alive
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.network import Fate
from ringcast.sim.text.frame_text import FrameText

if TYPE_CHECKING:
    from ringcast.sim.engine.member import Member

HIDDEN = (Alive.kind,)
"""Signs of life say nothing while all goes well."""


class Show:
    """Writes a line for everything that happens in a world. Give it to `World(observer=…)`."""

    def __init__(
        self, write: Callable[[str], None] = print, hide: Collection[str] = HIDDEN
    ) -> None:
        self._write = write
        self._hide = hide
        self._names: dict[Address, str] = {}
        self._lives: dict[str, int] = {}
        self._words = FrameText(self.name)

    def name(self, address: Address) -> str:
        """What a member is called; its second life is called b', and so on."""
        return self._names.get(address, str(address))

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        """A datagram was sent."""
        frames = [frame for frame in parcel.frames if frame.kind not in self._hide]
        if parcel.frames and not frames:
            return
        source = self._label(parcel.source)
        what = ", ".join(self._words.frame(frame, source) for frame in frames)
        target = to or (self._label(fates[0][0]) if fates else "no member")
        fate = "; ".join(self._fates(fates, alone=not to))
        self._line(now, f"{source} → {target}", what or "bytes that are not a frame", fate)

    def given(self, now: float, member: Member, event: Event) -> None:
        """An application was given an event."""
        self._line(now, self._label(member.name), self._words.event(event))

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Something was done to a member, or to the world."""
        if member is not None and member.me not in self._names:
            self._lives[member.name] = self._lives.get(member.name, 0) + 1
            self._names[member.me] = self._label(member.name)
        self._line(now, "*" if member is None else self._label(member.name), what)

    def _label(self, name: str) -> str:
        """What the process is called that has this name now."""
        return name + "'" * (self._lives.get(name, 1) - 1)

    def _line(self, now: float, who: str, what: str, fate: str = "") -> None:
        self._write(f"{now:11.4f}  {who:<14} {what:<44} {fate}".rstrip())

    def _fates(self, fates: list[tuple[str, Fate]], alone: bool) -> list[str]:
        """What did not go as it should, with the names of those that it happened to."""
        found: dict[str, list[str]] = {}
        for name, fate in fates:
            if fate.lost:
                frames = ", ".join(self._words.frame(frame, "") for frame in fate.lost)
                found.setdefault(f"dropped {frames}", []).append(self._label(name))
            elif fate.reason:
                found.setdefault(fate.reason, []).append(self._label(name))
            if len(fate.arrivals) > 1:
                found.setdefault("twice", []).append(self._label(name))
        return [what if alone else f"{what}: {' '.join(names)}" for what, names in found.items()]
