"""Which transport carries the datagrams of which settings, and what it can do.

A new transport is one file with its settings (a Spec) and its class (`transport.Transport`), and
one call of `register_transport`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError
from ringcast.runtime.net.inprocess import MemoryTransport
from ringcast.runtime.net.tcp import TcpTransport
from ringcast.runtime.net.transport import Transport
from ringcast.runtime.net.udp import UdpTransport
from ringcast.transports import Memory, Tcp, Udp

UDP_LARGEST = 65_507
TCP_LARGEST = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a transport can do with these settings."""

    is_networked: bool = True
    """Whether it reaches other processes."""
    is_stream: bool = False
    """Whether it connects before it sends, and so knows that a peer refuses."""
    has_multicast: bool = False
    """Whether one datagram reaches every member."""
    largest_datagram: int
    """Bytes of the largest datagram that it carries."""


Settings = TypeVar("Settings", bound=Spec)
_transports: dict[
    type[Spec], tuple[Callable[[Spec], Transport], Callable[[Spec], Capabilities]]
] = {}


def register_transport(
    kind: type[Settings],
    make: Callable[[Settings], Transport],
    capabilities: Callable[[Settings], Capabilities],
) -> None:
    """Let stacks with settings of this kind use a transport."""

    def checked(spec: Spec) -> Settings:
        assert isinstance(spec, kind)
        return spec

    _transports[kind] = (
        lambda spec: make(checked(spec)),
        lambda spec: capabilities(checked(spec)),
    )


def make_transport(spec: Spec | None) -> Transport:
    """The transport with these settings. Raises ConfigError when there are none."""
    return _registered(spec)[0](_given(spec))


def capabilities_of(spec: Spec | None) -> Capabilities:
    """What the transport with these settings can do. Raises ConfigError when there are none."""
    return _registered(spec)[1](_given(spec))


def _given(spec: Spec | None) -> Spec:
    if spec is None:
        raise ConfigError(f"the stack has no transport: insert {_known()}")
    return spec


def _registered(
    spec: Spec | None,
) -> tuple[Callable[[Spec], Transport], Callable[[Spec], Capabilities]]:
    kind = type(_given(spec))
    if kind not in _transports:
        raise ConfigError(f"{kind.__name__} is not a transport: use {_known()}")
    return _transports[kind]


def _known() -> str:
    *others, last = (f"{kind.__name__}()" for kind in _transports)
    return f"{', '.join(others)} or {last}"


register_transport(
    Udp,
    UdpTransport,
    lambda spec: Capabilities(has_multicast=bool(spec.multicast), largest_datagram=UDP_LARGEST),
)
register_transport(
    Tcp, TcpTransport, lambda spec: Capabilities(is_stream=True, largest_datagram=TCP_LARGEST)
)
register_transport(
    Memory,
    lambda spec: MemoryTransport(),
    lambda spec: Capabilities(is_networked=False, has_multicast=True, largest_datagram=TCP_LARGEST),
)
