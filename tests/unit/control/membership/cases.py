"""One case per state and event of the membership's table: what is fed in, and what must follow.

The outcome names the frames that are sent and the state afterwards; `=` stands for the same state.
"""

from __future__ import annotations

from collections.abc import Callable

from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import (
    Evict,
    Flushed,
    Frame,
    Installed,
    Join,
    Leave,
    Merge,
    MergeReady,
    Prepare,
    Refused,
    Section,
)
from tests.unit.control.membership.bench import ME, Bench, next_view, peer

OTHER = ViewId(8, Address(1))
"""The view of another group, which member 1 coordinates."""


def feed(bench: Bench, event: str) -> None:
    """The event, as it happens in most groups."""
    if event.endswith(" timer"):
        _wake(bench, event.removesuffix(" timer"))
    elif event in CALLS:
        CALLS[event](bench)
    else:
        frame, source = FRAMES[event](bench)
        bench.receive(frame, source)


def _wake(bench: Bench, name: str) -> None:
    if name == "gather":
        bench.join(9)  # Something to make a view for.
    elif name == "leave":
        bench.part.leave()
    bench.sent()
    bench.env.timers.cancel(bench.part, name)
    bench.env.now += 0.1
    bench.part.on_timer(name)


def _base(bench: Bench) -> ViewId:
    return ViewId(4, Address(3)) if bench.view is None else bench.view.id


def _proposal(bench: Bench) -> ViewId:
    """The proposal that the member makes, or has answered."""
    change = None if bench.part.coordinator is None else bench.part.coordinator.change
    return ViewId(5, Address(3)) if change is None else change.proposal


def _view(bench: Bench) -> Frame:
    members = (3, ME, 7) if bench.view is None else tuple(map(int, bench.view))
    return next_view(bench.view, *members, number=12)


def _ready(bench: Bench) -> Frame:
    section = Section(OTHER, (Address(1),), ())
    return MergeReady(ViewId(20, Address(ME)), (peer(1),), (0,), section)


FRAMES: dict[str, Callable[[Bench], tuple[Frame, int]]] = {
    "PREPARE": lambda bench: (Prepare(ViewId(10, Address(3)), _base(bench), (), 1), 3),
    "FLUSHED": lambda bench: (Flushed(_proposal(bench), 3, ()), 3),
    "VIEW": lambda bench: (_view(bench), 3),
    "INSTALLED": lambda bench: (Installed(ViewId(2, Address(9))), 9),
    "REFUSED": lambda bench: (Refused(_proposal(bench), _base(bench), ViewId(30, Address(1))), 3),
    "JOIN": lambda bench: (Join(peer(9), "", bench.part.cookie(peer(9))), 9),
    "LEAVE": lambda bench: (Leave(_base(bench)), 7),
    "EVICT": lambda bench: (Evict(Address(3), "it is slow"), 7),
    "MERGE": lambda bench: (Merge(ViewId(40, Address(1)), _base(bench), ""), 1),
    "MERGE_READY": lambda bench: (_ready(bench), 1),
}


def _suspect(bench: Bench) -> None:
    """Member 3 is silent: the coordinator, or one that has to answer a proposal."""
    bench.part.on_suspect(Address(3), True)


CALLS: dict[str, Callable[[Bench], None]] = {
    "found": lambda bench: bench.part.found(peer(1), OTHER, peer(1)),
    "suspect": _suspect,
    "reached": lambda bench: bench.part.reached(),
    "leave()": lambda bench: bench.part.leave(),
    "evict()": lambda bench: bench.part.evict(Address(3), "it is slow"),
}


def outcome(bench: Bench, before: State) -> str:
    """What followed, as one line."""
    frames = ", ".join(bench.kinds())
    timers = [name for name in ("gather",) if bench.env.timers.is_set(bench.part, name)]
    after = "=" if bench.part.state is before else bench.part.state.value
    parts = [frames, *timers, bench.closed, after]
    return "; ".join(part for part in parts if part)
