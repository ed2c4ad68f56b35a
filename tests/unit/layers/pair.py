"""Two members with nothing but unicast, for the tests of it."""

from collections.abc import Callable, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.wire.frames import Frame, UnicastData
from ringcast.layers.unicast import Unicast, UnicastLayer
from tests.unit.harness import Member, Net

A, B, C = Address(1), Address(2), Address(3)


def pair(mtu: int = 60_000, **settings: int) -> Net:
    """A and B in one view."""
    net = Net(*(Member(address, [Unicast(**settings)], mtu) for address in (A, B)))
    net.install(A, B)
    return net


def layer(net: Net, address: Address) -> UnicastLayer:
    """The layer of a member."""
    part = net.members[address].parts[0]
    assert isinstance(part, UnicastLayer)
    return part


def is_data(first: int) -> Callable[[Frame], bool]:
    """Whether a frame is the run that begins with this seqno."""
    return lambda frame: isinstance(frame, UnicastData) and frame.first == first


def send_each(net: Net, source: Address, to: Address, payloads: Sequence[Payload]) -> None:
    """Send messages one by one, each in a frame of its own."""
    for payload in payloads:
        net.members[source].send([payload], to)
