"""Transports: one registration makes settings usable, and says what the transport can do."""

from dataclasses import dataclass

import pytest

from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError
from ringcast.runtime.net.inprocess import MemoryTransport
from ringcast.runtime.net.registry import (
    Capabilities,
    capabilities_of,
    make_transport,
    register_transport,
)
from ringcast.runtime.net.tcp import TcpTransport
from ringcast.runtime.net.udp import UdpTransport
from ringcast.transports import Memory, Tcp, Udp


@dataclass(frozen=True, kw_only=True)
class Pigeons(Spec):
    """A transport of a user's own."""

    largest: int = 100


@pytest.mark.parametrize(
    ("spec", "kind"), [(Udp(), UdpTransport), (Tcp(), TcpTransport), (Memory(), MemoryTransport)]
)
def test_settings_have_their_transport(spec: Spec, kind: type) -> None:
    assert isinstance(make_transport(spec), kind)


def test_capabilities_follow_the_settings() -> None:
    assert capabilities_of(Udp()).has_multicast
    assert not capabilities_of(Udp(multicast="")).has_multicast
    assert capabilities_of(Tcp()).is_stream
    assert not capabilities_of(Memory()).is_networked


def test_a_new_transport_needs_one_registration() -> None:
    with pytest.raises(ConfigError, match="Pigeons is not a transport: use Udp"):
        make_transport(Pigeons())
    register_transport(
        Pigeons,
        lambda spec: MemoryTransport(),
        lambda spec: Capabilities(largest_datagram=spec.largest),
    )
    assert isinstance(make_transport(Pigeons()), MemoryTransport)
    assert capabilities_of(Pigeons(largest=7)).largest_datagram == 7


def test_a_stack_without_a_transport_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the stack has no transport: insert Udp\(\), Tcp\(\)"):
        make_transport(None)
