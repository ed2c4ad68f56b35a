"""Discovery: finding others, by multicast, seeds, a name in DNS, a shared directory, or several.

A joiner asks often. The coordinator answers, and so does every member that is asked directly. The
coordinator may have crashed unnoticed: a joiner that asks by multicast and is not
admitted hears one of the next members in rank, after a back-off; that answer goes to all, so that
the others do not repeat it. A coordinator goes on asking now and then, which is how partitions find
each other again. A question names its sender, so that two joiners hear of each other without an
answer. A joiner that the coordinator itself has answered puts its next question to that one alone:
many joiners that wait for a view must not keep all members busy with their questions.

The runtime looks at names and directories, and reports what it has seen (`suggest`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import ClassVar, NamedTuple

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Part, Spec
from ringcast.core.stack.ports import Control, FailureWatch, Ports, Search, ViewChanger
from ringcast.core.stack.registry import protocol
from ringcast.core.wire.frames import Discover, Frame, Present
from ringcast.errors import ConfigError, did_you_mean

FORMER_MAX = 32
"""How many former members are remembered, to be asked when there is no multicast."""
WHEN_ALONE = ("auto", "create", "wait", "fail")
ANSWER_SLOTS = 4
"""Answers in the coordinator's place: one interval after the question, and one slot more for each
rank; an interval has this many slots."""
ANSWER_RANK_FIRST, ANSWER_RANK_MAX = 3, 11
"""Members up to the first rank answer in the coordinator's place; those up to the second only if
the coordinator and all members up to the first rank are silent. The coordinator of a large group is
often late, and answers of all members to all would make it later."""
ASK_SHARE = 4
"""A joiner that has asked for a while waits a share of that time until it asks again: many joiners
of a busy group must not keep it busy with their questions."""
YIELDS_MAX = 3
"""How often in succession a coordinator puts its question off, since another one that leads the
merge knows of it."""
ASK_MAX = 32
"""How many of the suggested places are asked at a time; when there are more, they take turns."""
PLACES_MAX = 256
"""How many suggested places are remembered; more of them come from nowhere but a mistake."""
NAME_SHOWN = 24
"""Characters of a member's name in answers to processes outside the view."""
HOST_MAX = 255
"""Characters of the name of a host."""
SHOWN_MAX = 5
"""How many places are named in a sentence."""


@protocol(role="discovery", under="slow", offers=(Search,), shared=False)
@dataclass(frozen=True, kw_only=True)
class Discovery(Spec):
    """How members find each other."""

    multicast: bool = True
    """Whether to ask all members that multicast reaches."""
    seeds: tuple[str, ...] = ()
    """Endpoints to ask besides, "host:port"; one that answers is enough, and it need not be the
    coordinator."""
    dns: str = ""
    """A name whose addresses are all asked, "host:port": that of a headless service, say."""
    file: str = ""
    """A directory that all members can write to: each leaves a file there that says where it is."""
    methods: tuple[str, ...] = ()
    """Further discovery methods, "name:argument" each, of those that a module has registered."""
    refresh: float = 5.0
    """Seconds between two looks at `dns` and `file`; a member without a group looks more often."""
    timeout: float = 0.3
    """Seconds to look for a group before one is created. Longer than the slowest answer, or members
    that start together begin apart and need a merge."""
    interval: float = 0.06
    """Seconds between the questions of a joiner."""
    merge_interval: float = 2.0
    """Seconds, on average, between a coordinator's questions for partitions; bounds how long a
    healed one stays apart."""
    when_alone: str = "auto"
    """What to do when no member is found in time: "create" a group, "wait", or "fail" with what was
    tried. "auto" creates one where others will look for it: with multicast or a directory, or when
    this member is among the seeds or the addresses of the name; else it waits."""
    alone: InitVar[str | None] = None
    """The former name of `when_alone`."""

    former: ClassVar[tuple[str, ...]] = ("alone",)

    def __post_init__(self, alone: str | None) -> None:
        object.__setattr__(self, "when_alone", renamed_choice(self.when_alone, alone, "Discovery("))
        for name, example in (("seeds", "host:port"), ("methods", "name:argument")):
            texts: tuple[object, ...] = getattr(self, name)
            if not all(isinstance(text, str) for text in texts):
                raise ConfigError(f"{name} is {texts!r}: give a list, {name}=['{example}', …]")
        if self.when_alone not in WHEN_ALONE:
            raise ConfigError(
                f'Discovery.when_alone is "{self.when_alone}": give one of {", ".join(WHEN_ALONE)}'
                f"{did_you_mean(str(self.when_alone), WHEN_ALONE)}"
            )
        ways = (self.multicast, self.seeds, self.dns, self.file, self.methods)
        if not any(ways) and self.when_alone != "create":
            raise ConfigError(
                "Discovery has neither multicast nor seeds: give seeds=['host:port', …], dns or"
                ' file, or when_alone="create"'
            )
        if self.dns and not is_endpoint(self.dns):
            raise ConfigError(f'Discovery.dns is "{self.dns}": give "host:port", DNS has no ports')
        for name in ("timeout", "interval", "merge_interval", "refresh"):
            if getattr(self, name) <= 0:
                raise ConfigError(
                    f"Discovery.{name} is {getattr(self, name)}: give seconds above 0"
                )

    def build(self, env: Env) -> DiscoveryPart:
        """The part with these settings."""
        return DiscoveryPart(env, self)


class Sighting(NamedTuple):
    """What a look at a name or a directory has brought."""

    places: tuple[str, ...]
    """Endpoints to ask; this member's own may be among them."""
    problem: str = ""
    """Why there is nothing to see; empty when the look was a good one."""


class DiscoveryPart(Part):
    """Asks for members, and answers processes that ask."""

    kinds = (Discover, Present)

    def __init__(self, env: Env, spec: Discovery) -> None:
        super().__init__(env)
        self.spec = spec
        self._view = NO_VIEW
        self._searching = False
        self._search_began = 0.0
        self._yields = 0
        """How often in a row the question for partitions was put off."""
        self._former: dict[Address, Peer] = {}
        self._at_endpoint: dict[str, list[Peer]] = {}
        """The members of the view by their endpoints."""
        self._sightings: dict[str, Sighting] = {}
        """What is known of the name and of the directory, once it was looked up."""
        self._looks_due = {way for way in (spec.dns, spec.file, *spec.methods) if way}
        self._answered_by: Address | None = None
        """The coordinator, if it has answered this joiner since its last question."""
        self._decide_at = 0.0
        """When those have had time to answer that were suggested."""
        self._turn = 0
        self._asked_at = 0.0
        """When the question arrived that this member may answer in the coordinator's place."""
        self._introduced = (0.0, Address(0))
        """When this member was introduced last, and to which process."""
        self.rest_until = 0.0
        """Until when this member does not want to be found, since the others evicted it."""

    def connect(self, ports: Ports) -> None:
        self._control = ports[Control]
        self._membership = ports[ViewChanger]
        self._failure = ports[FailureWatch]

    def on_view(self, installation: Installation) -> None:
        """Remember a former member: it may be behind a partition, and the seeds may be gone."""
        view, old = installation.view, installation.old
        if old is not None and not self.spec.multicast:
            self._former.update({p.address: p for p in old.peers if p.address in installation.left})
        self.env.timers.cancel(self, "answer")
        self._at_endpoint = {}
        for peer in view.peers:
            if peer.endpoint:
                self._at_endpoint.setdefault(peer.endpoint, []).append(peer)
        kept = [peer for peer in self._former.values() if peer.address not in view]
        self._former = {peer.address: peer for peer in kept[-FORMER_MAX:]}

    # What the membership asks (ports.Search) -----------------------------------------------------

    def search(self, view: ViewId) -> None:
        self._view, self._searching, self._answered_by = view, True, None
        self._search_began = self.env.now
        self._ask()

    def pause(self) -> None:
        # Each view calls this: one after the other must not put the next question off.
        if self._searching or not self.env.timers.is_set(self, "ask"):
            self._searching, self._answered_by = False, None
            self._later()

    def soon(self, seconds: float) -> None:
        due = self.env.now + seconds * self.env.rng.uniform(0.5, 1.5)
        self.env.timers.set_earlier(self, "ask", due)

    def put_off(self) -> None:
        if not self._searching and self._yields < YIELDS_MAX:
            self._yields += 1
            self._later()

    def introduce(self, to: Peer, coordinator: Peer, echo: int = 0) -> None:
        answer = (self.env.now, to.address)
        if answer != self._introduced:
            self._introduced = answer
            view = NO_VIEW if self._control.view is None else self._control.view.id
            cookie = self._membership.cookie(to)
            frame = Present(_short(self.env.peer), view, _short(coordinator), cookie, echo)
            self.env.out.send(frame, to.address)

    def rest(self, seconds: float) -> None:
        self.rest_until = self.env.now + seconds
        self.env.timers.set(self, "ask", self.rest_until)

    @property
    def resting(self) -> bool:
        """Whether this member does not want to be found."""
        return self.env.now < self.rest_until

    @property
    def tried(self) -> str:
        """What was tried, in words."""
        spec = self.spec
        ways = ["multicast"] if spec.multicast else []
        if spec.seeds:
            ways.append("seeds " + ", ".join(spec.seeds))
        if spec.dns:
            ways.append(f"the name {spec.dns} ({self._seen(spec.dns)})")
        if spec.file:
            ways.append(f"the directory {spec.file} ({self._seen(spec.file)})")
        ways += [f"{method} ({self._seen(method)})" for method in spec.methods]
        return " and ".join(ways) or "no place to ask at"

    @property
    def when_alone(self) -> str:
        """What to do when no member is found."""
        if self._looks_due or self.env.now < self._decide_at:
            return "wait"  # For answers from the places that have just been suggested.
        if self.spec.when_alone != "auto":
            return self.spec.when_alone
        return "create" if self._may_begin else "wait"

    @property
    def _may_begin(self) -> bool:
        """Whether others will look for the group where this member is."""
        spec = self.spec
        if spec.file:
            return not self._sightings[spec.file].problem
        looked_at = (*((spec.dns,) if spec.dns else ()), *spec.methods)
        named = {
            *spec.seeds,
            *(place for way in looked_at for place in self._sightings[way].places),
        }
        return not (spec.seeds or looked_at) or self.env.peer.endpoint in named

    @property
    def timeout(self) -> float:
        """Seconds to look for others."""
        return self.spec.timeout

    # What the runtime has seen -------------------------------------------------------------------

    def suggest(self, way: str, sighting: Sighting) -> None:
        """A look at `dns` or `file` (which of them, `way` says) has brought this."""
        self._sightings[way] = sighting._replace(places=sighting.places[:PLACES_MAX])
        if way in self._looks_due:
            self._looks_due.discard(way)
            self._decide_at = self.env.now + self.spec.timeout

    @property
    def places(self) -> tuple[str, ...]:
        """All that are asked directly: seeds, and what was suggested."""
        suggested = (place for sighting in self._sightings.values() for place in sighting.places)
        return tuple(dict.fromkeys([*self.spec.seeds, *suggested]))

    def _seen(self, way: str) -> str:
        sighting = self._sightings.get(way)
        if sighting is None:
            return "no answer yet"
        others = [place for place in sighting.places if place != self.env.peer.endpoint]
        more = f" and {len(others) - SHOWN_MAX} more" if len(others) > SHOWN_MAX else ""
        return sighting.problem or ", ".join(others[:SHOWN_MAX]) + more or "no other member there"

    def _suggested(self) -> Iterator[str]:
        """The places to ask now: not this member's own, nor those of members of its view."""
        view = self._control.view
        known = {self.env.peer.endpoint, *self.spec.seeds}
        if view is not None:
            known.update(peer.endpoint for peer in view.peers)
        places = [place for place in self.places if place not in known]
        for number in range(min(ASK_MAX, len(places))):
            yield places[(self._turn + number) % len(places)]
        self._turn += ASK_MAX

    # ---------------------------------------------------------------------------------------------

    def on_timer(self, name: str) -> None:
        view = self._control.view
        if name == "answer":
            self._answer_for_coordinator()
        elif self.resting:
            self.env.timers.set(self, "ask", self.rest_until)
        elif self._searching:
            self._ask()
        elif view is not None and view.coordinator == self.env.me:
            self._view = view.id
            self._ask()
        else:
            self._later()

    def _ask(self) -> None:
        self._yields = 0
        coordinator, self._answered_by = self._answered_by, None
        if coordinator is not None:
            self.env.out.send(Discover(self.env.peer, self._view, 1), coordinator)
            self._later()
            return
        if self.spec.multicast:
            self.env.out.send(Discover(self.env.peer, self._view, 0))
        for seed in self.spec.seeds:
            if seed != self.env.peer.endpoint:
                self.env.out.send(Discover(self.env.peer, self._view, 1), seed)
        for place in self._suggested():
            self.env.out.send(Discover(self.env.peer, self._view, 1), place)
        for former in self._former:
            self.env.out.send(Discover(self.env.peer, self._view, 1), former)
        self._later()

    def _later(self) -> None:
        pause = self.spec.merge_interval
        if self._searching:
            asked_for = self.env.now - self._search_began
            pause = min(max(self.spec.interval, asked_for / ASK_SHARE), pause)
        self.env.timers.set(self, "ask", self.env.now + pause * self.env.rng.uniform(0.5, 1.5))

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Discover):
            self._on_discover(frame, source)
        elif isinstance(frame, Present) and frame.peer.address == source:
            self.env.out.learn(frame.peer)
            self.env.out.learn(frame.coordinator)
            if self._control.view is not None and source in self._control.view:
                self.env.timers.cancel(self, "answer")  # One answer is enough.
            if self._searching and frame.view != NO_VIEW and frame.coordinator.address == source:
                self._answered_by = source
            if not self.resting:
                self._membership.found(
                    frame.peer, frame.view, frame.coordinator, frame.cookie, frame.echo
                )

    def _on_discover(self, frame: Discover, source: Address) -> None:
        if frame.peer.address != source:
            return
        self.env.out.learn(frame.peer)
        if self.resting:
            return
        view = self._control.view
        if view is None:
            if frame.direct:
                self.introduce(frame.peer, self.env.peer)
        elif (frame.direct or view.coordinator == self.env.me) and frame.view != view.id:
            # Whether another coordinator that asks all is answered depends on who leads the merge.
            if frame.direct or frame.view == NO_VIEW or source in view:
                self.introduce(frame.peer, view.peers[0])
        elif frame.view == NO_VIEW and source not in view:
            self._answer_later(view)
        if view is not None:
            self._look_for_former_life(frame.peer)
        self._membership.found(frame.peer, frame.view, frame.peer)

    def _look_for_former_life(self, newcomer: Peer) -> None:
        """A new process at the endpoint of a member: the member has probably crashed."""
        for peer in self._at_endpoint.get(newcomer.endpoint, ()):
            if peer != newcomer:
                self._failure.hint(peer.address, is_refusal=True)

    def _answer_later(self, view: View) -> None:
        """Answer in the coordinator's place, unless another member or the next view does."""
        rank = view.rank(self.env.me)
        if rank > ANSWER_RANK_MAX or self.env.timers.is_set(self, "answer"):
            return
        self._asked_at = self.env.now
        slots = ANSWER_SLOTS + rank + self.env.rng.random()
        pause = slots * self.spec.interval / ANSWER_SLOTS
        self.env.timers.set(self, "answer", self.env.now + pause)

    def _answer_for_coordinator(self) -> None:
        view = self._control.view
        if view is None or self.resting:
            return
        before = view.members[: min(ANSWER_RANK_FIRST + 1, view.rank(self.env.me))]
        is_first = view.rank(self.env.me) <= ANSWER_RANK_FIRST
        if is_first or not self._failure.is_heard(before, self._asked_at):
            self.env.counters["answered_for_coordinator"] += 1
            self.env.out.send(Present(self.env.peer, view.id, view.peers[0], 0, 0))
            self._failure.hint(view.coordinator)


def _short(peer: Peer) -> Peer:
    """A peer with the beginning of its name: an answer is not much longer than its question."""
    return peer._replace(name=peer.name[:NAME_SHOWN])


def renamed_choice(when_alone: str, alone: str | None, call: str) -> str:
    """What `when_alone` says, or the former setting and value for it, with a warning."""
    if alone is None and when_alone != "found":
        return when_alone
    choice = when_alone if alone is None else alone
    choice = "create" if choice == "found" else choice
    warnings.warn(
        f'alone="found" is now when_alone="create": write {call}when_alone="{choice}")',
        DeprecationWarning,
        stacklevel=4,
    )
    return choice


def is_endpoint(text: str) -> bool:
    """Whether a text has a host and a port; others may write any text into a shared directory."""
    host, _, port = text.rpartition(":")
    is_host = 0 < len(host) <= HOST_MAX and host != "[]" and host.isprintable()
    return is_host and host.startswith("[") == host.endswith("]") and is_port(port)


def is_port(text: str) -> bool:
    """Whether a text is the number of a port; a peer may send any text."""
    is_short_number = len(text) <= 5 and text.isascii() and text.isdecimal()
    return is_short_number and 0 < int(text) <= 65_535
