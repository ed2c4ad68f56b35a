"""Discovery: finding others, by multicast, by a list of seeds, or both.

A joiner asks often; answers come from coordinators, and from seeds whatever they are. A coordinator
goes on asking now and then, which is how partitions find each other again. Asking carries who asks,
so that two that start together hear of each other without an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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


@dataclass(frozen=True, kw_only=True)
class Discovery(Spec):
    """How members find each other."""

    role: ClassVar[str] = "discovery"

    multicast: bool = True
    """Whether to ask everybody that multicast reaches."""
    seeds: tuple[str, ...] = ()
    """Endpoints to ask besides, "host:port"; one that answers is enough, and it need not be the
    coordinator."""
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
    tried; "auto" founds one unless seeds are given that this member is not among."""

    def __post_init__(self) -> None:
        if not self.multicast and not self.seeds and self.alone != "found":
            raise ConfigError(
                "Discovery has neither multicast nor seeds: give seeds=['host:port', …],"
                ' or alone="found"'
            )
        for name in ("timeout", "interval", "merge_interval"):
            if getattr(self, name) <= 0:
                raise ConfigError(
                    f"Discovery.{name} is {getattr(self, name)}: give seconds above 0"
                )
        if self.alone not in ALONE:
            raise ConfigError(f'Discovery.alone is "{self.alone}": give one of {", ".join(ALONE)}')

    def build(self, env: Env) -> DiscoveryPart:
        """The part with these settings."""
        return DiscoveryPart(env, self)


class DiscoveryPart(Part):
    """Asks who is there and answers those who ask."""

    kinds = (Discover, Present)

    def __init__(self, env: Env, spec: Discovery) -> None:
        super().__init__(env)
        self.spec = spec
        self._view = NO_VIEW
        self._searching = False
        self._former: dict[Address, Peer] = {}

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
        self._searching = False
        self._later()

    @property
    def tried(self) -> str:
        """What was tried, in words."""
        ways = ["multicast"] if self.spec.multicast else []
        if self.spec.seeds:
            ways.append("seeds " + ", ".join(self.spec.seeds))
        return " and ".join(ways) or "nobody to ask"

    @property
    def alone(self) -> str:
        """What to do when nobody is found."""
        if self.spec.alone != "auto":
            return self.spec.alone
        expects_others = self.spec.seeds and self.env.peer.endpoint not in self.spec.seeds
        return "wait" if expects_others else "found"

    @property
    def timeout(self) -> float:
        """Seconds to look for others."""
        return self.spec.timeout

    # ---------------------------------------------------------------------------------------------

    def on_timer(self, name: str) -> None:
        view = self._control.view
        if self._searching:
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
            self._membership.found(frame.peer, frame.view, frame.coordinator)

    def _on_discover(self, frame: Discover, source: Address) -> None:
        if frame.peer.address != source:
            return
        self.env.out.learn(frame.peer)
        view = self._control.view
        if view is None:
            if frame.direct:
                self.env.out.send(Present(self.env.peer, NO_VIEW, self.env.peer), source)
        elif (frame.direct or view.coordinator == self.env.me) and frame.view != view.id:
            self.env.out.send(Present(self.env.peer, view.id, view.peers[0]), source)
        self._membership.found(frame.peer, frame.view, frame.peer)
