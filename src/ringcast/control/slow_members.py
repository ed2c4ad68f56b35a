"""Slow members as a declared policy: wait for them, go on without them, or take them out of the
group.

Whatever makes a sender wait (a full window, missing credits) is a brake, and knows how far each
member is. This part looks at the brakes now and then. A member holds the others back when,
while a brake is on, it has not moved since the last look, or when it is among the few in the lower
half while most are in the upper. How long each of them did so is in `stats()`, by name; at the
bound the policy says what is done:

    wait    nothing: all senders go at the pace of the slowest, and nothing is ever skipped
    skip    senders no longer wait for it until it has caught up; it is told what it missed
    evict   a view without it is made; it is told, stays away for a while, and comes back by a merge
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.events import Outpaced
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Part, Spec
from ringcast.core.stack.ports import Brake, Control, Ports, ViewChanger
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.errors import ConfigError

CHECKS_PER_BOUND = 8
"""How often the brakes are looked at within the bound."""

AWAY_BOUNDS = 10
"""An evicted member stays away for this many times the bound: if it is as slow as before when it
comes back, the others wait a tenth of their time for it, and no more."""


@protocol(role="slow", under="stability", former="Slow", shared=False)
@dataclass(frozen=True, kw_only=True)
class SlowMembers(Spec):
    """What is done about members that hold the others back."""

    policy: str = "wait"
    """"wait", "skip" or "evict"."""
    bound: float = 5.0
    """Seconds that a member may hold this one back before the policy is applied. Shorter costs the
    others less, and hits members that are only busy for a moment."""

    def __post_init__(self) -> None:
        if self.policy not in ("wait", "skip", "evict"):
            raise ConfigError(
                f'SlowMembers.policy is "{self.policy}": give "wait", "skip" or "evict"'
            )
        if self.bound <= 0:
            raise ConfigError(f"SlowMembers.bound is {self.bound}: give seconds above 0")

    def build(self, env: Env) -> SlowMembersPart:
        """The part with these settings."""
        return SlowMembersPart(env, self)


@dataclass(frozen=True, kw_only=True)
class SlowMembersSnapshot(PartSnapshot):
    """The members that hold this one back."""

    policy: str
    """What is done about them: "wait", "skip" or "evict"."""
    held_back: Mapping[str, float]
    """By name: the seconds for which a member has held this one back."""


class SlowMembersPart(Part):
    """Looks at the brakes and applies the policy."""

    def __init__(self, env: Env, spec: SlowMembers) -> None:
        super().__init__(env)
        self.spec = spec
        self.held_back: dict[Address, float] = {}
        """Seconds that each member of the view has held this one back, in all."""
        self._stretches: dict[Address, float] = {}
        """The same, wearing off while the member does not: what the bound is compared with."""
        self._interval = spec.bound / CHECKS_PER_BOUND
        self._view: View | None = None
        self._before: list[dict[Address, int]] = []

    def connect(self, ports: Ports) -> None:
        self._control, self._membership = ports[Control], ports[ViewChanger]
        self._brakes = ports.all(Brake)
        self._before = [{} for _ in self._brakes]
        if self.spec.policy == "evict":
            self._membership.stay_away(AWAY_BOUNDS * self.spec.bound)

    def on_view(self, installation: Installation) -> None:
        self._view = installation.view
        for member in installation.left:
            self.held_back.pop(member, None)
            self._stretches.pop(member, None)
        if len(installation.view) > 1:
            if not self.env.timers.is_set(self, "look"):
                self.env.timers.set(self, "look", self.env.now + self._interval)
        else:
            self.env.timers.cancel(self, "look")

    def on_timer(self, name: str) -> None:
        self.env.timers.set(self, "look", self.env.now + self._interval)
        behind: dict[Address, Brake] = {}
        for place, brake in enumerate(self._brakes):
            positions = brake.positions()
            for member in holding_back(self.env.me, positions, self._before[place]):
                behind[member] = brake
            self._before[place] = positions
        for member in list(self._stretches):
            if member not in behind:
                self._stretches[member] -= self._interval
                if self._stretches[member] <= 0:
                    del self._stretches[member]
        for member, brake in behind.items():
            self._blame(member, brake)

    def _blame(self, member: Address, brake: Brake) -> None:
        self.held_back[member] = self.held_back.get(member, 0.0) + self._interval
        self.env.counters["held_back_ms"] += round(1000 * self._interval)
        stretch = self._stretches[member] = self._stretches.get(member, 0.0) + self._interval
        if self.spec.policy == "wait" or stretch < 0.999 * self.spec.bound:
            return
        del self._stretches[member]
        if self.spec.policy == "skip":
            self.env.counters["slow_skipped"] += 1
            self._control.emit(Outpaced(member, stretch))
            brake.release(member)
        else:
            self.env.counters["slow_evicted"] += 1
            name = str(self.env.me) if self._view is None else self._view.name(self.env.me)
            reason = f"held the group back for {stretch:.3g} seconds, as seen by {name}"
            self._membership.evict(member, reason)

    def snapshot(self) -> SlowMembersSnapshot:
        view = self._view
        held_back = {
            str(member) if view is None else view.name(member): round(seconds, 3)
            for member, seconds in self.held_back.items()
        }
        return SlowMembersSnapshot(policy=self.spec.policy, held_back=held_back)


def holding_back(
    me: Address, positions: dict[Address, int], before: dict[Address, int]
) -> set[Address]:
    """The members that keep the sender `me` waiting, by their positions now and at the last look.

    When all are equally slow none holds the others back; one that does not move at all always
    does.
    """
    if not positions:
        return set()
    others = {member: place for member, place in positions.items() if member != me}
    bottom, top = min(positions.values()), max(positions.values())
    still = {m for m, place in others.items() if place < top and before.get(m) == place}
    lower = {m for m, place in others.items() if 2 * place < bottom + top}
    return still | lower if 2 * len(lower) < len(others) else still
