"""One membership part, driven by hand: the test is its network, its multicast and its stack."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable

from ringcast.control.membership.part import MembershipPart
from ringcast.control.membership.settings import Membership
from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import Event
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation
from ringcast.core.stack.ports import Control, FailureWatch, Flush, Ports, Search
from ringcast.core.wire.frames import (
    Ending,
    Flushed,
    Frame,
    Held,
    Install,
    Join,
    Merge,
    Prepare,
    Present,
    Section,
)

ME = 5
SPEC = Membership(gather=0.02, retry=0.05, retry_max=0.5, change_timeout=10.0)


def peer(number: int) -> Peer:
    """The member with this address."""
    return Peer(Address(number), f"m{number}", f"host:{number}")


def view_of(number: int, *members: int) -> View:
    """The view with this number, made by its first member."""
    return View(ViewId(number, Address(members[0])), tuple(map(peer, members)))


class Bench:
    """The part of member 5, and what stands for the rest of its stack."""

    def __init__(self) -> None:
        self.env = Env(peer(ME), random.Random(1))
        self.part = MembershipPart(self.env, SPEC)
        self.view: View | None = None
        self.events: list[Event] = []
        self.installed: list[Installation] = []
        self.closed = ""
        self.drained = True
        self.reaches_at_once = False
        """Whether nothing is missing before a view."""
        self.aims: list[ViewId] = []
        self.accused: list[Address] = []
        self.searches: list[str] = []
        self.resting = self.owes_news = False
        self.when_alone, self.tried, self.timeout = "wait", "multicast", 0.3
        ports = Ports()
        for port in (Control, Flush, Search, FailureWatch):
            ports.offer(port, self)
        self.part.connect(ports)
        self.part.on_start()
        self.sent()

    # What the test does --------------------------------------------------------------------------

    def receive(self, frame: Frame, source: int) -> None:
        """A frame arrives."""
        self.part.on_frame(frame, Address(source))

    def join(self, number: int, stack: str = "") -> None:
        """A joiner that has a cookie of this member asks to be admitted."""
        self.receive(Join(peer(number), stack, self.part.cookie(peer(number))), number)

    def find(self, number: int, view: ViewId) -> None:
        """The coordinator of another group is heard that brings back a cookie."""
        other = peer(number)
        self.part.found(other, view, other, 1, self.part.cookie(other))

    def sent(self) -> list[tuple[int | None, Frame]]:
        """What was sent since the last call: to whom (None means all), and what."""
        frames, self.env.out.frames = self.env.out.frames, []
        return [(None if to is None else int(to), frame) for to, frame in frames]

    def kinds(self) -> list[str]:
        """The same as words: "JOIN to 1", "PREPARE to all"."""
        return [f"{f.kind} to {'all' if to is None else to}" for to, f in self.sent()]

    def wake(self, name: str) -> None:
        """A timer of the part is due; it has to be set."""
        assert self.env.timers.is_set(self.part, name), f"the timer {name} is not set"
        self.env.timers.cancel(self.part, name)
        self.part.on_timer(name)

    def seconds_to(self, name: str) -> float:
        """How long until this timer of the part is due."""
        due, _ = self.env.timers._due[self.part, name]
        return round(due - self.env.now, 9)

    def is_in(self, state: State) -> bool:
        """Whether the part is in this state."""
        return self.part.state is state

    def install_view(self, view: View) -> None:
        """This view admits the member; what it sent for that is forgotten."""
        asked = peer(next((int(member) for member in view if member != ME), ME))
        self.part.found(asked, ViewId(1, asked.address), asked)
        self.receive(Install(view, (0,) * len(view), ()), view.coordinator)
        self.sent()

    # Ports ---------------------------------------------------------------------------------------

    def install(self, installation: Installation) -> None:
        self.view = installation.view
        self.installed.append(installation)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def suspect(self, member: Address, suspected: bool) -> None:
        self.part.on_suspect(member, suspected)

    def finish(self, reason: str) -> None:
        self.closed = self.closed or reason

    def freeze(self, departed: Iterable[Address]) -> int:
        return 10

    def held(self, departed: Iterable[Address]) -> tuple[Held, ...]:
        return tuple(Held(member, 0, 7) for member in departed)

    def aim(self, view: ViewId, starts: dict[Address, int], endings: tuple[Ending, ...]) -> None:
        self.aims.append(view)
        if self.reaches_at_once:
            self.part.reached()

    def reached(self) -> bool:
        return self.reaches_at_once

    def owes(self) -> bool:
        return self.owes_news

    def accuse(self, member: Address) -> None:
        self.accused.append(member)

    def hint(self, member: Address, is_refusal: bool = False) -> None:
        self.accused.append(member)

    def is_heard(self, members: Collection[Address], since: float) -> bool:
        return True

    def search(self, view: ViewId) -> None:
        self.searches.append("search")

    def pause(self) -> None:
        self.searches.append("pause")

    def introduce(self, to: Peer, coordinator: Peer, echo: int = 0) -> None:
        view = NO_VIEW if self.view is None else self.view.id
        frame = Present(self.env.peer, view, coordinator, self.part.cookie(to), echo)
        self.env.out.send(frame, to.address)

    def soon(self, seconds: float) -> None:
        self.searches.append("soon")

    def put_off(self) -> None:
        self.searches.append("put off")

    def rest(self, seconds: float) -> None:
        self.searches.append("rest")


# A member in each state --------------------------------------------------------------------------

OLD = view_of(4, 3, ME, 7)
"""The view of a follower: member 3 coordinates."""
OWN = view_of(4, ME, 3, 7)
"""The view of a coordinator."""


def searching() -> Bench:
    return Bench()


def joining() -> Bench:
    bench = Bench()
    bench.part.found(peer(3), ViewId(4, Address(3)), peer(3))
    bench.sent()
    return bench


def following(view: View = OLD) -> Bench:
    bench = Bench()
    bench.install_view(view)
    return bench


def stopped() -> Bench:
    bench = following()
    bench.receive(Prepare(ViewId(5, Address(3)), OLD.id, (), 0), 3)
    bench.sent()
    return bench


def installing() -> Bench:
    bench = stopped()
    bench.receive(next_view(OLD, 3, ME, 7), 3)
    bench.sent()
    return bench


def coordinating() -> Bench:
    return following(OWN)


def preparing() -> Bench:
    bench = coordinating()
    bench.part.evict(Address(7), "it is slow")
    bench.wake("gather")
    bench.sent()
    return bench


def merging() -> Bench:
    bench = coordinating()
    bench.receive(Merge(ViewId(9, Address(1)), OWN.id, ""), 1)
    bench.sent()
    return bench


def yielded() -> Bench:
    bench = coordinating()
    bench.receive(Prepare(ViewId(6, Address(3)), OWN.id, (), 0), 3)
    bench.sent()
    return bench


def completing() -> Bench:
    bench = preparing()
    bench.receive(Flushed(ViewId(5, Address(ME)), 3, ()), 3)
    bench.sent()
    return bench


def departed() -> Bench:
    bench = coordinating()
    bench.part.leave()
    bench.wake("gather")
    for member in (3, 7):
        bench.receive(Flushed(ViewId(5, Address(ME)), 3, ()), member)
    bench.sent()
    return bench


MEMBERS_IN: dict[State, Callable[[], Bench]] = {
    State.SEARCHING: searching,
    State.JOINING: joining,
    State.FOLLOWING: following,
    State.STOPPED: stopped,
    State.INSTALLING: installing,
    State.COORDINATING: coordinating,
    State.PREPARING: preparing,
    State.MERGING: merging,
    State.YIELDED: yielded,
    State.COMPLETING: completing,
    State.DEPARTED: departed,
}


def next_view(base: View | None, *members: int, number: int = 5) -> Install:
    """The view that follows `base`, with these members."""
    view = view_of(number, *members)
    together = tuple(m for m in view if base is not None and m in base)
    base_id = NO_VIEW if base is None else base.id
    return Install(view, (3,) * len(view), (Section(base_id, together, ()),))
