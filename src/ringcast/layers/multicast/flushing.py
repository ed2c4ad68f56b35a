"""The part of a reliable multicast that a view change needs: stop, say how far, get there.

Before a view is installed every member stops sending (`freeze`), says what it holds of those who
are gone (`held`), and gets what everybody else has (`aim`): messages of the living up to where they
stopped, messages of the departed up to the furthest that a survivor holds. What it lacks it asks
from the sender, or from whoever holds it in the sender's place.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.address import Address
from ringcast.core.env import Env
from ringcast.core.frames import Ending, Held
from ringcast.core.ports import ViewChanger
from ringcast.core.repair import Repair
from ringcast.core.view import NO_VIEW, ViewId
from ringcast.core.windows import ReceiveWindow
from ringcast.layers.multicast.patience import Patience

IN_VAIN = 3
"""So often somebody is asked for what comes before a view, before others are."""


class Flushing(Patience):
    """What a view change asks of the reliable multicast (ports.Flush)."""

    _membership: ViewChanger
    _repairs: dict[Address, Repair]

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._frozen = True
        """Whether nothing may be sent until a view is installed."""
        self._aiming = False
        self._aims: dict[Address, int] = {}
        """Per sender: the last message that comes before the view that waits."""
        self._next = NO_VIEW
        """The view that waits."""
        self._holders: dict[Address, Address] = {}
        """Whom to ask for the messages of a sender that is gone."""
        self._asked: dict[Address, tuple[int, int, Address]] = {}
        """Per sender: how far its messages were handed up, how often was asked since, and whom."""

    def freeze(self, departed: Iterable[Address]) -> int:
        self._frozen, self._aiming, self._aims, self._next = True, False, {}, NO_VIEW
        for member in departed:
            window = self.windows.get(member)
            if window is not None:
                window.hold(window.handed)
        return self.sent.high

    def held(self, departed: Iterable[Address]) -> tuple[Held, ...]:
        windows = ((member, self.windows.get(member)) for member in departed)
        return tuple(Held(m, max(w.low, w.holed), w.handed) for m, w in windows if w is not None)

    def aim(self, view: ViewId, starts: dict[Address, int], endings: tuple[Ending, ...]) -> None:
        ends = {ending.origin: ending for ending in endings}
        self._aiming, self._aims, self._next = True, {}, view
        self._holders = {}
        for sender, window in self.windows.items():
            target = starts.get(sender, window.handed)
            if sender in ends:
                target = ends[sender].last
                self._holders[sender] = ends[sender].holder
                self._forget_stable(window, ends[sender].low)
            self._aims[sender] = max(target, window.handed)
            window.hold(self._aims[sender])
            window.reach(self._aims[sender])
            window.expect(self._aims[sender])
            self._look(sender, window)
            if sender in self._repairs:
                self._repairs[sender].hurry(self.env.now)
                self.env.timers.set_earlier(self, "repair", self.env.now)
        for sender, window in self.windows.items():
            self._hand_up(sender, window.hand())
        self._check_aims()

    def on_suspect(self, member: Address, suspected: bool) -> None:
        """Who was asked for what comes before the view is gone: ask the next who may have it."""
        if not suspected or not self._aiming:
            return
        others = [m for m in self.windows if m != member and m not in self._holders.values()]
        for sender, aim in self._aims.items():
            asked = self._holders.get(sender, sender)
            if asked == member and self.windows[sender].handed < aim and others:
                self._holders[sender] = others[len(self._holders) % len(others)]
                if sender in self._repairs:
                    self._repairs[sender].hurry(self.env.now)

    def _whom_to_ask(self, sender: Address) -> Address:
        """The sender, or who was named in its place; when a view waits and they stay silent, the
        others in turn: the sender may have left, or crashed, and any of them may have it."""
        named = self._holders.get(sender, sender)
        if not self._aiming:
            return named
        handed = self.windows[sender].handed
        before, times, asked = self._asked.get(sender, (handed, 0, named))
        if handed > before:
            times, named = 0, asked  # Who was asked last has it.
            self._holders[sender] = asked
        if times >= IN_VAIN:
            self._holders.setdefault(sender, sender)  # Now it counts whoever it comes from.
            candidates = [m for m in self.windows if m != named] + [named]
            asked = candidates[(times - IN_VAIN) % len(candidates)]
        else:
            asked = named
        self._asked[sender] = handed, times + 1, asked
        return asked

    def _thaw(self) -> None:
        """A view is installed: messages of all its members flow again."""
        self._frozen, self._aiming = False, False
        self._aims, self._holders, self._asked, self._next = {}, {}, {}, NO_VIEW

    def reached(self) -> bool:
        return all(self.windows[sender].handed >= aim for sender, aim in self._aims.items())

    def _check_aims(self) -> None:
        if self._aiming and self.reached():
            self._aiming = False
            self._membership.reached()

    def _forget_stable(self, window: ReceiveWindow, low: int) -> None:
        raise NotImplementedError
