"""Failure detection: members that do not answer any more.

In a group of up to `ALL_WATCH_MAX` all watch all. In a larger one each member sends signs of life
to the few that follow it in the view, and watches the few before it; so the cost per member does
not grow with the group. A member that hears nothing of a watched one for `timeout` accuses it
before the first candidates for the coordinator's place. These verify it by asking the accused
themselves, and only if it stays silent for `verify` it counts as suspected. Any datagram is a sign
of life and clears the accused at once.

A hint makes a member accuse at once, without waiting for `timeout`: a connection that ends or is
refused, a port without a listener, a new process at the member's endpoint, a coordinator that does
not answer joiners. A living member answers, and nothing happens. A silent one is suspected only if
another member reports it too, where there is another to ask: a link that rejects one member's
datagrams for a while leads to no suspicion. Where the accused's own system has refused several
probes (one more of them in a group of two), `verify_refused` is enough; else it takes `verify`.

Two members that do not reach each other, in one direction or both, while the coordinator reaches
both, would hold all senders up. One of them goes on reporting the other. After `pair_timeout` the
coordinator makes a view without the one that is in more such pairs, or the less senior of the two;
that one stays away for a while, and comes back by a merge. A member that does not hear the
coordinator reports it to the coordinator, which may hear it; a coordinator that is in most of the
pairs has the next member make a view without it.

A member that was itself paused (its own tick is late) accuses no other: it starts to count again.

Worst case from crash to suspicion: interval + timeout + interval + verify, per `watchers` members
in a row that crash together; `verify_refused` or `verify` after a hint.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Part, Spec
from ringcast.core.stack.ports import (
    Control,
    FailureWatch,
    Ports,
    SilenceListener,
    ViewChanger,
)
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import Alive, Frame, Probe, Suspect
from ringcast.errors import ConfigError

ALL_WATCH_MAX = 24
"""In a group of up to this many members all watch all, so that each pair is noticed that does not
reach each other: 23 frames out and in per interval. The cost of a larger group grows no further."""
CANDIDATES = 3
"""How many of the most senior members are told of a suspicion."""
REPORT_GAP = 2.5
"""Reports about a member that are further apart than this many intervals are not one."""
SILENT_INTERVALS = 2
"""A member that was not heard for this many intervals may still reach others: the multicast asks
these how far its messages go."""
AWAY_TIMEOUTS = 4
"""A member that was evicted stays away for this many times `timeout`."""
PROBES = 3
"""How often an accused is asked within `verify_refused`, and within `verify`."""
TOLERANCE = 1e-9
BELIEVE_TIMEOUTS = 4
"""For this many times `timeout` after a hint that was false, further hints about that member only
have it asked."""
REFUSALS = 2
"""How many refusals are several: the hint itself, and a probe that was refused as well."""
REFUSALS_ALONE = 3
"""How many it takes where there is no other member to confirm them."""


@protocol(role="failure", under="discovery", offers=(FailureWatch,), former="Failure", shared=False)
@dataclass(frozen=True, kw_only=True)
class FailureDetector(Spec):
    """How crashes are found."""

    interval: float = 0.5
    """Seconds between signs of life."""
    timeout: float = 2.5
    """Seconds of silence after which a member is accused; several intervals, or losses accuse the
    living."""
    verify: float = 0.5
    """Seconds that an accused has to answer before it is suspected."""
    verify_refused: float = 0.15
    """Seconds that an accused has to answer when its system refuses the probes and another member
    reports it as well; at most `verify`."""
    watchers: int = 3
    """How many members watch each one in groups of more than 24, where not all watch all; more
    finds crashes of neighbours sooner, and costs as many frames."""

    pair_timeout: float = 1.0
    """Seconds for which one member has to report another that the coordinator hears, before a view
    without the less senior of the two is made. Longer spares members on bad links, and lets their
    senders wait."""

    def __post_init__(self) -> None:
        for name in ("interval", "timeout", "verify", "verify_refused", "pair_timeout"):
            if getattr(self, name) <= 0:
                raise ConfigError(
                    f"FailureDetector.{name} is {getattr(self, name)}: give seconds above 0"
                )
        if self.timeout < 2 * self.interval:
            raise ConfigError(
                f"FailureDetector.timeout is {self.timeout}: give at least twice the interval"
                f" of {self.interval} seconds"
            )
        if self.watchers < 1:
            raise ConfigError(f"FailureDetector.watchers is {self.watchers}: give at least 1")

    def build(self, env: Env) -> FailureDetectorPart:
        """The part with these settings."""
        return FailureDetectorPart(env, self)


@dataclass(slots=True)
class Accusation:
    """What is known against a member that may have crashed."""

    since: float
    is_hinted: bool = False
    """Whether only hints speak against the member: it has not been silent for the timeout."""
    refusals: int = 0
    """How often its system has refused what this member sent."""
    reporters: set[Address] = field(default_factory=set)
    """The other members that accuse it too."""
    is_reported: bool = False
    """Whether this member has told the candidates, by a hint or since the accused is silent."""


@dataclass(frozen=True, kw_only=True)
class FailureSnapshot(PartSnapshot):
    """What this member believes of the others."""

    suspected: tuple[Address, ...]
    """The members that give no sign of life."""


class FailureDetectorPart(Part):
    """Sends signs of life, watches others, and verifies accusations."""

    kinds = (Alive, Probe, Suspect)
    hears = True

    def __init__(self, env: Env, spec: FailureDetector) -> None:
        super().__init__(env)
        self.spec = spec
        self.suspected: set[Address] = set()
        self._view: View | None = None
        self._absent: set[Address] = set()
        """Members that are suspected, or known to be in another view by now."""
        self._watchers: list[Address] = []
        self._watched: dict[Address, float] = {}
        """When each member that this one watches was last heard."""
        self._accused: dict[Address, Accusation] = {}
        self._reports: dict[tuple[Address, Address], tuple[float, float]] = {}
        """Per reporter and reported: when that began, and when it was last said."""
        self._hinted: dict[Address, float] = {}
        """When there was a hint about each member; one per `verify` is enough."""
        self._denied: dict[Address, float] = {}
        """When each member showed that a hint about it was false."""
        self._last_tick = 0.0
        self._was_silent = False
        """Whether any member was silent at the last tick."""

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]
        self._listener = ports.get(SilenceListener)
        self._membership = ports[ViewChanger]
        self._membership.stay_away(AWAY_TIMEOUTS * self.spec.timeout, is_default=True)

    def on_view(self, installation: Installation) -> None:
        view = self._view = installation.view
        self._accused = {m: what for m, what in self._accused.items() if m in view}
        self._reports = {}
        self._hinted = {m: at for m, at in self._hinted.items() if m in view}
        self._denied = {m: at for m, at in self._denied.items() if m in view}
        stayed = [member for member in view if member not in installation.joined]
        self.suspected = {member for member in stayed if member in self.suspected}
        self._absent = set(self.suspected)
        self._plan()
        if len(view) > 1 and not self.env.timers.is_set(self, "tick"):
            self._last_tick = self.env.now
            # At random: the first of the watchers to send finds a dead member's port refused.
            first = self.env.now + self.spec.interval * self.env.rng.random()
            self.env.timers.set(self, "tick", first)

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self._absent.add(member)
        else:
            self._absent.discard(member)
        self._plan()

    def _plan(self) -> None:
        """The members to watch and the watchers: the neighbours in the ring of present members."""
        assert self._view is not None
        me, absent = self.env.me, self._absent
        ring = [member for member in self._view if member == me or member not in absent]
        size, rank = len(ring), ring.index(me)
        is_small = len(self._view) <= ALL_WATCH_MAX
        distances = range(1, size if is_small else self.spec.watchers + 1)
        self._watchers = list(dict.fromkeys(ring[(rank + d) % size] for d in distances))
        watched = dict.fromkeys(ring[(rank - d) % size] for d in distances)
        now = self.env.now
        self._watched = {member: self._watched.get(member, now) for member in watched}

    # Signs of life -------------------------------------------------------------------------------

    def is_heard(self, members: Collection[Address], since: float) -> bool:
        return any(self._watched.get(member, math.inf) > since for member in members)

    def on_heard(self, source: Address) -> None:
        if source in self._watched:
            self._watched[source] = self.env.now
        if self._accused:
            accusation = self._accused.pop(source, None)
            if accusation is not None and accusation.is_hinted:
                self._denied[source] = self.env.now
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
            for member in dict.fromkeys(frame.members):
                if member == source:
                    self._suspect(member)  # It has failed, and says so itself.
                elif member in self._view:
                    self._note_report(source, member, self._view)
                    if member != self.env.me:
                        self._second(source, member)

    def _note_report(self, source: Address, member: Address, view: View) -> None:
        """A member reports another: if this one coordinates, hears both and has heard the report
        for long enough, one of the two has to go."""
        acting = next((m for m in view if m not in self._absent), self.env.me)
        if acting != self.env.me or member in self._absent:
            return
        if self._membership.is_late(member) or self._membership.is_late(source):
            return  # One of them is not in this view yet, and shows no life to its members.
        now, pair = self.env.now, (source, member)
        since, last = self._reports.get(pair, (now, now))
        if now - last > REPORT_GAP * self.spec.interval:
            since = now
        self._reports[pair] = (since, now)
        if now - since >= self.spec.pair_timeout and member not in self._accused:
            self._part(pair, view)

    def _part(self, pair: tuple[Address, Address], view: View) -> None:
        """One of two members has to go: the one that is in more pairs, or the less senior."""
        since = self.env.now - REPORT_GAP * self.spec.interval
        links = {
            frozenset(reported)
            for reported, (_, last) in self._reports.items()
            if last >= since and self._absent.isdisjoint(reported)
        }
        ends = Counter(end for link in links for end in link)
        victim = max(pair, key=lambda member: (ends[member], view.rank(member)))
        self._reports = {p: times for p, times in self._reports.items() if victim not in p}
        self.env.counters["pairs_parted"] += 1
        is_tie = ends[pair[0]] == ends[pair[1]]
        why = "the less senior of the two" if is_tie else "the one with more such links"
        names = f"{view.name(pair[0])} does not hear {view.name(pair[1])}"
        self._membership.evict(victim, f"{names}, and {why} has to go")

    def _second(self, source: Address, member: Address) -> None:
        """Another member accuses one: verify it, and confirm it if this member has signs too."""
        self.accuse(member)
        accusation = self._accused.get(member)
        if accusation is not None and source not in accusation.reporters:
            accusation.reporters.add(source)
            if accusation.refusals:
                self.env.out.send(Suspect((member,)), source)

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
        self._tell_silence()
        silent = [m for m, heard in self._watched.items() if now - heard >= self.spec.timeout]
        silent += [m for m in self._view if m in self.suspected and m not in silent]
        self._tick_later()
        if silent:
            self._report(silent)
            if (coordinator := self._view.coordinator) in silent:
                # It may hear this member, and has to know that the way back is cut.
                self.env.out.send(Suspect((coordinator,)), coordinator)
            for member in silent:
                self.accuse(member)
        if self.suspected:
            self._membership.remind()

    def _tell_silence(self) -> None:
        since = self.env.now - SILENT_INTERVALS * self.spec.interval
        silent = [member for member, heard in self._watched.items() if heard <= since]
        if self._listener is not None and (silent or self._was_silent):
            self._listener.silence(silent)
        self._was_silent = bool(silent)

    def _tick_later(self) -> None:
        self.env.timers.set(self, "tick", self.env.now + self.spec.interval)

    def _forgive(self) -> None:
        """This member was paused: members that were silent meanwhile are not to blame."""
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

    def hint(self, member: Address, is_refusal: bool = False) -> None:
        """There is a sign that a member has crashed: accuse it now, here and before the candidates.

        Any process can give such signs: it says hello in the name of a member, or that it is at
        the endpoint of one. So after a false one the next ones are no proof, and the candidates
        are told only of a member that stays silent."""
        if self._view is None or member not in self._view or member == self.env.me:
            return
        if member in self.suspected:
            return
        last = self._hinted.get(member, -math.inf)
        denied = self._denied.get(member, -math.inf)
        is_believed = self.env.now - denied > BELIEVE_TIMEOUTS * self.spec.timeout
        if member not in self._accused:
            if self.env.now - last < self._quick:
                return  # It has just answered.
            self._accuse(member, Accusation(self.env.now, is_hinted=True, is_reported=is_believed))
        self._accused[member].refusals += is_refusal and is_believed
        if self.env.now - last >= self.spec.verify:
            self._hinted[member] = self.env.now
            self.env.counters["hints"] += 1
            if is_believed:
                self._report([member])

    def accuse(self, member: Address) -> None:
        """A member does not answer: suspect it, unless it gives a sign of life."""
        if member in self._accused:
            self._accused[member].is_hinted = False
        elif member not in self.suspected:
            self._accuse(member, Accusation(self.env.now))

    def _accuse(self, member: Address, accusation: Accusation) -> None:
        self._accused[member] = accusation
        self._probe(member, accusation)

    def _probe(self, member: Address, accusation: Accusation) -> None:
        self.env.out.send(Probe(), member)
        is_early = self.env.now < accusation.since + self._quick - TOLERANCE
        pause = (self._quick if is_early else self.spec.verify) / PROBES
        due = min(self.env.now + pause, accusation.since + self.spec.verify)
        self.env.timers.set_earlier(self, "verify", due)

    @property
    def _quick(self) -> float:
        return min(self.spec.verify_refused, self.spec.verify)

    def _verify(self) -> None:
        for member, accusation in list(self._accused.items()):
            if member not in self._accused:
                continue  # The view has changed meanwhile, since another one was suspected.
            age = self.env.now - accusation.since + TOLERANCE
            if age < (self._quick if self._is_refused(accusation) else self.spec.verify):
                if age >= self.spec.verify / 2 and not accusation.is_reported:
                    accusation.is_reported = True
                    self._report([member])  # Another member's hint may need a second voice.
                self._probe(member, accusation)
                continue
            is_alone = accusation.is_hinted and not accusation.reporters and self._has_witness
            del self._accused[member]
            if is_alone:
                continue  # The other members do not miss it.
            self._suspect(member)

    def _is_refused(self, accusation: Accusation) -> bool:
        """Whether the accused's system has refused it often enough for `verify_refused`."""
        if accusation.reporters:
            return accusation.refusals >= REFUSALS
        return accusation.refusals >= REFUSALS_ALONE and not self._has_witness

    def _suspect(self, member: Address) -> None:
        if member not in self.suspected and member != self.env.me:
            self._accused.pop(member, None)
            self.suspected.add(member)
            self._control.suspect(member, True)

    @property
    def _has_witness(self) -> bool:
        """Whether there is another member that could confirm an accusation."""
        assert self._view is not None
        doubted = self._absent | self._accused.keys()
        return any(member not in doubted and member != self.env.me for member in self._view)

    def snapshot(self) -> FailureSnapshot:
        return FailureSnapshot(suspected=tuple(sorted(self.suspected)))
