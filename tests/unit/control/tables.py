"""Groups with nothing but NAKACK3 and stability, for the tests of them together."""

from collections.abc import Callable, Sequence

from ringcast.control.stability import Stability, StabilityPart
from ringcast.core.model.address import Address
from ringcast.core.wire.frames import Frame
from ringcast.layers.multicast.nakack3 import NakAck3, NakAck3Layer
from tests.unit.harness import Flight, Member, Net, clean

A, B, C, D = (Address(n) for n in (1, 2, 3, 4))


def group(
    count: int = 3,
    spec: NakAck3 | None = None,
    rounds: Stability | None = None,
    settle: bool = True,
) -> Net:
    """This many members in one view, which has had its first round."""
    specs = (spec or NakAck3(), rounds or Stability())
    net = Net(*(Member(address, specs, 60_000) for address in range(1, count + 1)))
    net.install(*net.members)
    if settle:
        net.settle()
        net.sent.clear()
    return net


def table(net: Net, address: Address) -> NakAck3Layer:
    part = net.members[address].parts[0]
    assert isinstance(part, NakAck3Layer)
    return part


def stability(net: Net, address: Address) -> StabilityPart:
    part = net.members[address].parts[1]
    assert isinstance(part, StabilityPart)
    return part


def lows(net: Net, sender: Address = A) -> list[int]:
    """What each member has purged of a sender."""
    return [
        table(net, x).sent.low if x == sender else table(net, x).windows[sender].low
        for x in net.members
    ]


def without(target: Address, kind: type[Frame] = Frame) -> Callable[[Flight], Sequence[float]]:
    """A network that loses everything of a kind for one member."""

    def policy(flight: Flight) -> Sequence[float]:
        is_lost = flight.target == target and isinstance(flight.frame, kind)
        return () if is_lost else clean(flight)

    return policy
