"""Wiring: from specs to the parts of one stack, each put into its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

from ringcast.core.model.block_times import BlockTimes
from ringcast.core.stack import registry
from ringcast.core.stack.env import Env
from ringcast.core.stack.fingerprint import fingerprint
from ringcast.core.stack.inbox import Inbox
from ringcast.core.stack.part import Layer, Part, Spec
from ringcast.core.stack.ports import (
    Control,
    FailureWatch,
    Gate,
    GroupDelivery,
    Intake,
    Packer,
    PairDelivery,
    Ports,
    Search,
    Sizing,
    Taker,
    ViewChanger,
)
from ringcast.core.wire.layout import DATA_SIZE, FLAGS_MAX, HEADER_SIZE
from ringcast.core.wire.placement import Placement

REQUIRED = (GroupDelivery, PairDelivery, Packer, Search, FailureWatch, ViewChanger)
"""The ports without which there is no stack."""


@dataclass(slots=True)
class Built:
    """The parts of one stack, and what the stack itself asks of them."""

    parts: list[Part]
    """All of them: the ladder from top to bottom, then the control parts."""
    ports: Ports
    ladder: list[Layer]
    """From the inbox to the end below the lowest layer."""
    top: Layer
    bottom: Layer
    wire: Packer
    gate: Gate | None
    membership: ViewChanger
    max_message: int
    """The largest message that the ladder carries, in bytes."""
    block_times: BlockTimes
    """How long a message may wait for room."""


class Bottom(Layer):
    """The end of the ladder: nothing that needs to go further gets here."""

    def room(self, dest: object) -> tuple[int, int]:
        """None: no layer carries such a batch."""
        return 0, 0

    @property
    def max_message(self) -> int:
        """What fits a datagram."""
        return self.env.mtu - HEADER_SIZE - DATA_SIZE - 4

    @property
    def max_unit(self) -> int:
        """The same."""
        return self.max_message


def build(
    specs: Sequence[Spec],
    env: Env,
    inbox: Inbox,
    control: Control,
    group: int,
    placement: Placement,
) -> Built:
    """Make the parts of a checked sequence of specs, link the ladder and hand out the ports.

    Raises ConfigError when a part lacks a port that it says it offers, or a port is missing.
    """
    env.fingerprint = fingerprint(specs)
    # From the bottom up: the wire sets the mtu that the layers above need to know.
    made = [(spec, spec.build(env)) for spec in reversed(specs)][::-1]
    layers = [part for _, part in made if isinstance(part, Layer)]
    ladder = [inbox, *layers, Bottom(env)]
    for above, below in pairwise(ladder):
        above.below, below.above = below, above
    ports = Ports()
    ports.offer(Control, control)
    ports.offer(Sizing, control)
    ports.offer(Intake, inbox)
    ports.offer(Placement, placement)
    for spec, part in made:
        part.role_name = spec.role
        for port in registry.of(type(spec)).offers:
            ports.offer(port, part)
    known = reduce(or_, (registry.of(type(spec)).flags for spec in specs), 0)
    inbox.special_flags = FLAGS_MAX & ~known
    multicast, wire = ports[GroupDelivery], ports[Packer]
    inbox.group, inbox.pairs, inbox.takers = multicast, ports[PairDelivery], ports.all(Taker)
    wire.group = group
    parts = [*ladder, *(part for _, part in made if not isinstance(part, Layer))]
    for part in parts:
        part.connect(ports)
    return Built(
        parts=parts,
        ports=ports,
        ladder=ladder,
        top=ladder[1],
        bottom=ladder[-1],
        wire=wire,
        gate=ports.get(Gate),
        membership=ports[ViewChanger],
        max_message=ladder[1].max_message,
        block_times=multicast.block_times,
    )
