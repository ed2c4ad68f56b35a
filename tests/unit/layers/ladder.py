"""Members with a whole ladder: large messages, fragments, credits, a multicast and unicast."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar, cast

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, Progress, Skipped, Undelivered
from ringcast.core.stack.part import Layer, Part, Spec
from ringcast.core.stack.ports import Delivery
from ringcast.core.stack.wiring import Bottom
from tests.unit.harness import Member, Net, Policy, clean

A, B, C, D = (Address(n) for n in (1, 2, 3, 4))

P = TypeVar("P", bound=Part)
E = TypeVar("E", Skipped, Undelivered, Progress)


class Climber(Member):
    """A member whose layers are wired as in a stack."""

    def _link(self, specs: Sequence[Spec]) -> None:
        by_role = dict(zip((spec.role for spec in specs), self.parts, strict=True))
        layers = [part for part in self.parts if isinstance(part, Layer)]
        for above, below in pairwise([self.inbox, *layers, Bottom(self.env)]):
            above.below, below.above = below, above
        self.top = layers[0]
        self.evicted: list[tuple[Address, str]] = []
        multicast = by_role["multicast"]
        self.inbox.group = cast(Delivery, multicast)
        self.inbox.pairs = cast(Delivery, by_role.get("unicast"))
        self.owners = {kind: part for part in self.parts for kind in part.kinds}
        self.connect(specs)

    def get(self, kind: type[P]) -> P:
        """The part of this type."""
        return next(part for part in self.parts if isinstance(part, kind))

    def told(self, kind: type[E]) -> list[E]:
        """The events of this type that the application was given."""
        return [event for event in self.events if isinstance(event, kind)]

    def evict(self, member: Address, reason: str) -> None:
        self.evicted.append((member, reason))

    def stay_away(self, seconds: float, is_default: bool = False) -> None:
        pass


def climbers(
    count: int, *specs: Spec, mtu: int = 1_000, policy: Policy = clean, installed: bool = True
) -> tuple[Net, list[Climber]]:
    """This many members with these protocols, in one view, and the network between them."""
    members = [Climber(n, specs, mtu) for n in range(1, count + 1)]
    net = Net(*members, policy=policy)
    if installed:
        net.install(*net.members)
        net.run(0.5)
    return net, members


def given(member: Climber) -> list[Batch | Event]:
    """What waits for the application, taken as it is."""
    out: list[Batch | Event] = list(member.inbox.take(1 << 30))
    member.inbox.consumed()
    return out
