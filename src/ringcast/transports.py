"""How members reach each other: the settings of the transports, as data that a spec carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.stack.part import Spec
from ringcast.core.stack.registry import protocol
from ringcast.errors import ConfigError
from ringcast.layers.wire import UDP_MTU_MAX, Wire


@protocol(role="transport", under="membership", shared=False)
@dataclass(frozen=True, kw_only=True)
class Udp(Spec):
    """UDP: IP multicast to all members, unicast to one; IPv6 when `bind` and `multicast` are."""

    bind: str = "127.0.0.1"
    """The interface to use, by its address or name ("10.0.0.7", "eth0"); empty for the one that
    the multicast address is routed to. The default keeps everything on this machine."""
    advertise: str = ""
    """The host that others are told to reach this member at; empty for the bound one."""
    port: int = 0
    """The port for messages to this member alone; 0 takes a free one."""
    multicast: str = "239.77.7.7"
    """The group's multicast address; empty for none, and then everything is sent to each member."""
    multicast_port: int = 7700
    """The port of the multicast address, the same at all members."""
    ttl: int = 1
    """How many routers a multicast datagram may pass."""
    buffer: int = 8_000_000
    """Bytes of socket buffer to ask for; a burst that does not fit is lost and repaired."""

    def __post_init__(self) -> None:
        _check_port("Udp.port", self.port, least=0)
        _check_port("Udp.multicast_port", self.multicast_port, least=1)
        if not 0 <= self.ttl <= 255:
            raise ConfigError(f"Udp.ttl is {self.ttl}: give 0 to 255")
        if self.buffer < 4096:
            raise ConfigError(f"Udp.buffer is {self.buffer}: give at least 4,096 bytes")
        if self.multicast and ":" in self.bind and ":" not in self.multicast:
            raise ConfigError(
                f'Udp.bind is IPv6 and Udp.multicast "{self.multicast}" is not:'
                ' give multicast="ff02::7777", or ""'
            )
        if ":" in self.multicast and ":" not in self.bind:
            raise ConfigError(
                f'Udp.multicast is IPv6 and Udp.bind "{self.bind}" is not:'
                " give an IPv6 address of the interface"
            )

    def check(self, others: Mapping[str, Spec]) -> None:
        """A datagram of UDP has to carry what the wire makes."""
        wire = others["wire"]
        if isinstance(wire, Wire) and wire.mtu > UDP_MTU_MAX:
            raise ConfigError(
                f"Wire.mtu is {wire.mtu:,}: give up to {UDP_MTU_MAX:,} bytes, which fit a datagram"
                " of Udp"
            )

    def adapt(self, other: Spec) -> Spec:
        """What a stream carried at once has to fit a datagram now."""
        if isinstance(other, Wire) and other.mtu > UDP_MTU_MAX:
            return other.changed({"mtu": Wire().mtu})
        return other


@protocol(role="transport", under="membership", shared=False)
@dataclass(frozen=True, kw_only=True)
class Tcp(Spec):
    """TCP: a connection per pair of members, for networks without multicast."""

    bind: str = "127.0.0.1"
    """The address or interface to listen at; "0.0.0.0" or "::" for all of them."""
    advertise: str = ""
    """The host that others are told to reach this member at; empty for the bound one."""
    port: int = 0
    """The port to listen at; 0 takes a free one."""
    queue_bytes: int = 16_000_000
    """Bytes that may wait for one member; beyond it datagrams are dropped, and repaired later."""
    connections_max: int = 1_024
    """Connections at a time; one more is refused, so that no process can use up the descriptors."""
    connect_timeout: float = 2.0
    """Seconds that a connection may take."""
    retry_max: float = 2.0
    """The longest pause between attempts to reach a member."""
    stall_timeout: float = 5.0
    """Seconds without a sign of the network after which a connection is made anew."""
    tls_certificate: str = ""
    """A PEM file with this member's certificate; empty for connections without TLS."""
    tls_key: str = ""
    """A PEM file with the key of the certificate; empty when it is in the same file."""
    tls_authority: str = ""
    """A PEM file with the authority whose certificates the members have."""

    def __post_init__(self) -> None:
        _check_port("Tcp.port", self.port, least=0)
        if self.queue_bytes < 65_536:
            raise ConfigError(f"Tcp.queue_bytes is {self.queue_bytes}: give at least 65,536")
        if self.connections_max < 2:
            raise ConfigError(f"Tcp.connections_max is {self.connections_max}: give at least 2")
        for name in ("connect_timeout", "retry_max", "stall_timeout"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"Tcp.{name} is {getattr(self, name)}: give seconds above 0")
        if bool(self.tls_certificate) != bool(self.tls_authority) or (
            self.tls_key and not self.tls_certificate
        ):
            raise ConfigError(
                f'Tcp.tls_certificate is "{self.tls_certificate}" and Tcp.tls_authority is'
                f' "{self.tls_authority}": give both, or none of tls_*'
            )

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted and members have certificates."""
        return bool(self.tls_certificate)


@protocol(role="transport", under="membership", shared=False)
@dataclass(frozen=True, kw_only=True)
class Memory(Spec):
    """Inside one process, for tests: every member hears every other one."""


def _check_port(name: str, port: int, least: int) -> None:
    if not least <= port <= 65_535:
        raise ConfigError(f"{name} is {port}: give {least} to 65535")
