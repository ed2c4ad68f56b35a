"""Discovery: finding others, by multicast, seeds, a name in DNS, a shared directory, or several.

A joiner asks often; answers come from coordinators, and from whoever is asked directly, whatever it
is. A coordinator goes on asking now and then, which is how partitions find each other again. Asking
carries who asks, so that two that start together hear of each other without an answer.

Names and directories are looked at by the runtime, which says here what it has seen (`suggest`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ringcast.core.address import Address, Peer
from ringcast.core.env import Env
from ringcast.core.frames import Discover, Frame, Present
from ringcast.core.part import Installation, Part, Spec
from ringcast.core.ports import Ports
from ringcast.core.view import NO_VIEW, ViewId
from ringcast.errors import ConfigError

FORMER_MAX = 32
"""How many former members are remembered, to be asked when there is no multicast."""
ALONE = ("auto", "found", "wait", "fail")
ASK_MAX = 32
"""How many of the suggested places are asked at a time; when there are more, they take turns."""
PLACES_MAX = 256
"""How many suggested places are remembered; more of them come from nowhere but a mistake."""
SHOWN_MAX = 5
"""How many places are named in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Discovery(Spec):
    """How members find each other."""

    role: ClassVar[str] = "discovery"

    multicast: bool = True
    """Whether to ask everybody that multicast reaches."""
    seeds: tuple[str, ...] = ()
    """Endpoints to ask besides, "host:port"; one that answers is enough, and it need not be the
    coordinator."""
    dns: str = ""
    """A name whose addresses are all asked, "host:port": that of a headless service, say."""
    file: str = ""
    """A directory that all members can write to: each leaves a file there that says where it is."""
    refresh: float = 5.0
    """Seconds between two looks at `dns` and `file`; whoever has no group yet looks more often."""
    timeout: float = 0.3
    """Seconds to look for a group before one is founded. Longer than the slowest answer, or groups
    that start together begin apart and need a merge."""
    interval: float = 0.06
    """Seconds between questions of somebody who wants to join."""
    merge_interval: float = 2.0
    """Seconds, on average, between a coordinator's questions for partitions; bounds how long a
    healed one stays apart."""
    alone: str = "auto"
    """What to do when nobody is found in time: "found" a group, "wait" on, or "fail" with what was
    tried; "auto" founds one where the group may begin: unless seeds or a name are given, and this
    member is not among them."""

    def __post_init__(self) -> None:
        ways = (self.multicast, self.seeds, self.dns, self.file)
        if not any(ways) and self.alone != "found":
            raise ConfigError(
                "Discovery has neither multicast nor seeds: give seeds=['host:port', …], dns or"
                ' file, or alone="found"'
            )
        if self.dns and not is_endpoint(self.dns):
            raise ConfigError(f'Discovery.dns is "{self.dns}": give "host:port", DNS has no ports')
        for name in ("timeout", "interval", "merge_interval", "refresh"):
            if getattr(self, name) <= 0:
                raise ConfigError(
                    f"Discovery.{name} is {getattr(self, name)}: give seconds above 0"
                )
        if self.alone not in ALONE:
            raise ConfigError(f'Discovery.alone is "{self.alone}": give one of {", ".join(ALONE)}')

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
    """Asks who is there and answers those who ask."""

    kinds = (Discover, Present)

    def __init__(self, env: Env, spec: Discovery) -> None:
        super().__init__(env)
        self.spec = spec
        self._view = NO_VIEW
        self._searching = False
        self._former: dict[Address, Peer] = {}
        self._sightings: dict[str, Sighting] = {}
        """What is known of the name and of the directory, once somebody has looked."""
        self._looks_due = {way for way in (spec.dns, spec.file) if way}
        self._decide_at = 0.0
        """When those have had time to answer that were suggested."""
        self._turn = 0
        self._rest_until = 0.0

    def connect(self, ports: Ports) -> None:
        self._control = ports.control
        self._membership = ports.membership

    def on_view(self, installation: Installation) -> None:
        """Remember who left: after a partition it may be out there, and the seeds may be gone."""
        view, old = installation.view, installation.old
        if old is not None and not self.spec.multicast:
            self._former.update({p.address: p for p in old.peers if p.address in installation.left})
        kept = [peer for peer in self._former.values() if peer.address not in view]
        self._former = {peer.address: peer for peer in kept[-FORMER_MAX:]}

    # What the membership asks (ports.Search) -----------------------------------------------------

    def search(self, view: ViewId) -> None:
        self._view, self._searching = view, True
        self._ask()

    def pause(self) -> None:
        # Each view calls this: one after the other must not put the next question off.
        if self._searching or not self.env.timers.is_set(self, "ask"):
            self._searching = False
            self._later()

    def soon(self, seconds: float) -> None:
        due = self.env.now + seconds * self.env.rng.uniform(0.5, 1.5)
        self.env.timers.set_earlier(self, "ask", due)

    def rest(self, seconds: float) -> None:
        self._rest_until = self.env.now + seconds
        self.env.timers.set(self, "ask", self._rest_until)

    @property
    def resting(self) -> bool:
        """Whether this member does not want to be found."""
        return self.env.now < self._rest_until

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
        return " and ".join(ways) or "nobody to ask"

    @property
    def alone(self) -> str:
        """What to do when nobody is found."""
        if self._looks_due or self.env.now < self._decide_at:
            return "wait"  # For the answers of those who have just been suggested.
        if self.spec.alone != "auto":
            return self.spec.alone
        return "found" if self._may_begin else "wait"

    @property
    def _may_begin(self) -> bool:
        """Whether others will look for the group where this member is."""
        spec = self.spec
        if spec.file:
            return not self._sightings[spec.file].problem
        named = {*spec.seeds, *(self._sightings[spec.dns].places if spec.dns else ())}
        return not (spec.seeds or spec.dns) or self.env.peer.endpoint in named

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
        return sighting.problem or ", ".join(others[:SHOWN_MAX]) + more or "nobody else there"

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
        if self.resting:
            self.env.timers.set(self, "ask", self._rest_until)
        elif self._searching:
            self._ask()
        elif view is not None and view.coordinator == self.env.me:
            self._view = view.id
            self._ask()
        else:
            self._later()

    def _ask(self) -> None:
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
        pause = self.spec.interval if self._searching else self.spec.merge_interval
        self.env.timers.set(self, "ask", self.env.now + pause * self.env.rng.uniform(0.5, 1.5))

    def on_frame(self, frame: Frame, source: Address) -> None:
        if isinstance(frame, Discover):
            self._on_discover(frame, source)
        elif isinstance(frame, Present) and frame.peer.address == source:
            self.env.out.learn(frame.peer)
            self.env.out.learn(frame.coordinator)
            if not self.resting:
                self._membership.found(frame.peer, frame.view, frame.coordinator)

    def _on_discover(self, frame: Discover, source: Address) -> None:
        if frame.peer.address != source:
            return
        self.env.out.learn(frame.peer)
        if self.resting:
            return
        view = self._control.view
        if view is None:
            if frame.direct:
                self.env.out.send(Present(self.env.peer, NO_VIEW, self.env.peer), source)
        elif (frame.direct or view.coordinator == self.env.me) and frame.view != view.id:
            self.env.out.send(Present(self.env.peer, view.id, view.peers[0]), source)
        self._membership.found(frame.peer, frame.view, frame.peer)


def is_endpoint(text: str) -> bool:
    """Whether a text has a host and a port."""
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) <= 65_535
