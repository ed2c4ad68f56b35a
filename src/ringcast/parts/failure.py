"""Failure detection: who does not answer any more.

Each member sends signs of life to the few that follow it in the view, and watches the few before
it; so the cost per member does not grow with the group. Whoever hears nothing of a member for
`timeout` accuses it before the first candidates for the coordinator's place; these verify it by
asking the accused themselves, and only if that stays silent for `verify` it counts as suspected.
Any datagram is a sign of life and clears the accused at once.

A member that was itself paused (its own tick comes late) accuses nobody: it begins to count anew.

Worst case from crash to suspicion: interval + timeout + interval + verify, per `watchers` members
in a row that crash together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.address import Address
from ringcast.core.env import Env
from ringcast.core.frames import Alive, Frame, Probe, Suspect
from ringcast.core.part import Installation, Part, Spec
from ringcast.core.ports import Ports
from ringcast.core.view import View
from ringcast.errors import ConfigError

CANDIDATES = 3
"""How many of the most senior members are told of a suspicion."""
PROBES = 3
"""How often an accused is asked within `verify`."""


@dataclass(frozen=True, kw_only=True)
class Failure(Spec):
    """How crashes are found."""

    role: ClassVar[str] = "failure"

    interval: float = 0.5
    """Seconds between signs of life."""
    timeout: float = 2.5
    """Seconds of silence after which a member is accused; several intervals, or losses accuse the
    living."""
    verify: float = 0.5
    """Seconds that an accused has to answer before it is suspected."""
    watchers: int = 3
    """How many members watch each one; more finds crashes of neighbours sooner, and costs as many
    frames."""

    def __post_init__(self) -> None:
        for name in ("interval", "timeout", "verify"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"Failure.{name} is {getattr(self, name)}: give seconds above 0")
        if self.timeout < 2 * self.interval:
            raise ConfigError(
                f"Failure.timeout is {self.timeout}: give at least twice the interval"
                f" of {self.interval} seconds"
            )
        if self.watchers < 1:
            raise ConfigError(f"Failure.watchers is {self.watchers}: give at least 1")

    def build(self, env: Env) -> FailurePart:
        """The part with these settings."""
        return FailurePart(env, self)


class FailurePart(Part):
    """Sends signs of life, watches others, and verifies accusations."""

    kinds = (Alive, Probe, Suspect)
    hears = True

    def __init__(self, env: Env, spec: Failure) -> None:
        super().__init__(env)
        self.spec = spec
        self.suspected: set[Address] = set()
        self._view: View | None = None
        self._absent: set[Address] = set()
        """Members that are suspected, or known to be in another view by now."""
        self._watchers: list[Address] = []
        self._watched: dict[Address, float] = {}
        """When each member that this one watches was last heard."""
        self._accused: dict[Address, float] = {}
        """Until when each accused has time to answer."""
        self._last_tick = 0.0

    def connect(self, ports: Ports) -> None:
        self._control = ports.control
        self._membership = ports.membership

    def on_view(self, installation: Installation) -> None:
        view = self._view = installation.view
        self._accused = {m: until for m, until in self._accused.items() if m in view}
        stayed = [member for member in view if member not in installation.joined]
        self.suspected = {member for member in stayed if member in self.suspected}
        self._absent = set(self.suspected)
        self._plan()
        if len(view) > 1 and not self.env.timers.is_set(self, "tick"):
            self._last_tick = self.env.now
            self._tick_later()

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self._absent.add(member)
        else:
            self._absent.discard(member)
        self._plan()

    def _plan(self) -> None:
        """Whom to watch and who watches: the neighbours in the ring of those who are there."""
        assert self._view is not None
        ring = [member for member in self._view if member not in self._absent]
        size, rank = len(ring), ring.index(self.env.me)
        distances = range(1, min(self.spec.watchers, size - 1) + 1)
        self._watchers = list(dict.fromkeys(ring[(rank + d) % size] for d in distances))
        watched = dict.fromkeys(ring[(rank - d) % size] for d in distances)
        now = self.env.now
        self._watched = {member: self._watched.get(member, now) for member in watched}

    # Signs of life -------------------------------------------------------------------------------

    def on_heard(self, source: Address) -> None:
        if source in self._watched:
            self._watched[source] = self.env.now
        if source in self._accused:
            del self._accused[source]
        if source in self.suspected and not self._membership.is_elsewhere(source):
            self.suspected.discard(source)
            self._control.suspect(source, False)

    def on_frame(self, frame: Frame, source: Address) -> None:
        if self._view is None:
            return
        if source not in self._view:
            self._membership.stranger(source)
        elif isinstance(frame, Probe):
            self.env.out.send(Alive(), source)
        elif isinstance(frame, Suspect):
            for member in frame.members:
                if member in self._view and member != self.env.me:
                    self.accuse(member)

    # The tick ------------------------------------------------------------------------------------

    def on_timer(self, name: str) -> None:
        if self._view is None or len(self._view) == 1:
            return
        if name == "verify":
            self._verify()
            return
        now = self.env.now
        if now - self._last_tick > self.spec.interval + self.spec.timeout / 2:
            self._forgive()
        self._last_tick = now
        for watcher in self._watchers:
            self.env.out.send(Alive(), watcher)
        silent = [m for m, heard in self._watched.items() if now - heard >= self.spec.timeout]
        silent += [m for m in self._view if m in self.suspected and m not in silent]
        self._tick_later()
        if silent:
            self._report(silent)
        if self.suspected:
            self._membership.remind()

    def _tick_later(self) -> None:
        self.env.timers.set(self, "tick", self.env.now + self.spec.interval)

    def _forgive(self) -> None:
        """This member was paused: whoever was silent in the meantime is not to blame."""
        self.env.counters["paused"] += 1
        self._watched = dict.fromkeys(self._watched, self.env.now)
        self._accused.clear()

    # Accusations ---------------------------------------------------------------------------------

    def _report(self, silent: list[Address]) -> None:
        """Tell the candidates for the coordinator's place, again on each tick until a view comes.

        This member verifies it as well: should the candidates be gone too, the ring closes over
        the silent, and the next of them is watched.
        """
        assert self._view is not None
        out_of_question = {*silent, *self._absent}
        candidates = [m for m in self._view if m not in out_of_question][:CANDIDATES]
        for candidate in candidates:
            if candidate != self.env.me:
                self.env.out.send(Suspect(tuple(silent)), candidate)
        for member in silent:
            self.accuse(member)

    def accuse(self, member: Address) -> None:
        """A member does not answer: suspect it, unless it gives a sign of life."""
        if member in self.suspected or member in self._accused:
            return
        self._accused[member] = self.env.now + self.spec.verify
        self._probe(member)

    def _probe(self, member: Address) -> None:
        self.env.out.send(Probe(), member)
        self.env.timers.set_earlier(self, "verify", self.env.now + self.spec.verify / PROBES)

    def _verify(self) -> None:
        now = self.env.now
        for member, until in list(self._accused.items()):
            if member not in self._accused:
                continue  # The view has changed meanwhile, since another one was suspected.
            if until <= now + 1e-9:
                del self._accused[member]
                self.suspected.add(member)
                self._control.suspect(member, True)
            else:
                self._probe(member)

    def snapshot(self) -> dict[str, object]:
        return {"suspected": [str(member) for member in sorted(self.suspected)]}
