"""Wiring: from specs to the parts of one stack, each put into its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, cast

from ringcast.core.blocktimes import BlockTimes
from ringcast.core.codec import DATA_SIZE, HEADER_SIZE
from ringcast.core.env import Env
from ringcast.core.inbox import Delivery, Inbox, Taker
from ringcast.core.outbox import Datagram, Outbox
from ringcast.core.part import Layer, Part, Spec
from ringcast.core.ports import Brake, Flush, Numbering, Search, Table, Tracker, ViewChanger, Watch


class Packer(Protocol):
    """What makes datagrams of frames."""

    group: int

    def pack(self, out: Outbox) -> list[Datagram]:
        """The outbox as datagrams."""
        ...


class Gate(Protocol):
    """What may drop datagrams on purpose."""

    def admit(self) -> bool:
        """Whether the next datagram is let in."""
        ...


@dataclass(slots=True)
class Built:
    """The parts of one stack, by what they are for."""

    parts: list[Part]
    """All of them: the ladder from top to bottom, then the control parts."""
    top: Layer
    bottom: Layer
    wire: Packer
    gate: Gate | None
    flush: Flush
    membership: ViewChanger
    discovery: Search
    failure: Watch
    table: Table | None
    numbering: Numbering
    tracker: Tracker | None
    brakes: tuple[Brake, ...]
    max_message: int
    """The largest message that the ladder carries, in bytes."""
    block_times: BlockTimes
    """How long a message may wait for room."""


class Bottom(Layer):
    """The end of the ladder: nothing that needs to go further gets here."""

    def room(self, dest: object) -> tuple[int, int]:
        """None: no layer carries such a batch."""
        return 0, 0


def build(specs: Sequence[Spec], env: Env, inbox: Inbox, group: int) -> Built:
    """Make the parts of a checked sequence of specs and link the ladder."""
    by_role: dict[str, Part] = {}
    ladder: list[Layer] = [inbox]
    control: list[Part] = []
    # From the bottom up: the wire sets the mtu that the layers above need to know.
    parts = [(spec, spec.build(env)) for spec in reversed(specs)]
    for spec, part in reversed(parts):
        by_role[spec.role] = part
        if isinstance(part, Layer):
            ladder.append(part)
        else:
            control.append(part)
    ladder.append(Bottom(env))
    for above, below in pairwise(ladder):
        above.below, below.above = below, above
    inbox.group = cast(Delivery, by_role["multicast"])
    inbox.pairs = cast(Delivery, by_role["unicast"])
    inbox.takers = tuple(cast(Taker, layer) for layer in ladder[1:] if hasattr(layer, "taken"))
    wire = cast(Packer, by_role["wire"])
    wire.group = group
    table = by_role["multicast"] if hasattr(by_role["multicast"], "stable") else None
    return Built(
        parts=[*ladder, *control],
        top=ladder[1],
        bottom=ladder[-1],
        wire=wire,
        gate=cast(Gate | None, by_role.get("faults")),
        flush=cast(Flush, by_role["multicast"]),
        membership=cast(ViewChanger, by_role["membership"]),
        discovery=cast(Search, by_role["discovery"]),
        failure=cast(Watch, by_role["failure"]),
        table=cast(Table | None, table),
        numbering=cast(Numbering, by_role["multicast"]),
        tracker=cast(Tracker | None, by_role.get("large")),
        brakes=tuple(cast(Brake, layer) for layer in ladder if hasattr(layer, "positions")),
        max_message=_max_message(specs, env),
        block_times=_block_times(specs),
    )


def _block_times(specs: Sequence[Spec]) -> BlockTimes:
    multicast = next(spec for spec in specs if spec.role == "multicast")
    return BlockTimes(cast(str, multicast.values()["max_block_times"]))


def _max_message(specs: Sequence[Spec], env: Env) -> int:
    values = {spec.role: spec.values() for spec in specs}
    if "fragment" in values:
        return cast(int, values["fragment"]["max_message"])
    largest = env.mtu - HEADER_SIZE - DATA_SIZE - 4
    if "flow" in values:
        # What is larger than all credits would wait for more than there ever are.
        largest = min(largest, cast(int, values["flow"].get("max_credits", largest)))
    return largest
