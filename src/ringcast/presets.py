"""Ready stacks. Each but `lan` is written as a difference from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringcast.errors import ConfigError
from ringcast.layers.flow import Flow
from ringcast.layers.fragment import Fragment
from ringcast.layers.large import Large
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.pace import Pace
from ringcast.layers.unicast.layer import Unicast
from ringcast.layers.wire import Wire
from ringcast.parts.discovery import Discovery
from ringcast.parts.failure import Failure
from ringcast.parts.membership.settings import Membership
from ringcast.parts.slow import Slow
from ringcast.parts.stability import Stability
from ringcast.spec import StackSpec
from ringcast.transports import Tcp, Udp

PORT = 7800
"""Where members listen that are found by a name, unless told otherwise."""


def lan(bind: str = "") -> StackSpec:
    """UDP multicast and fixed windows, at the address `bind`, else on the usual interface.

    Promises every message of a view to all of its members, in order, once; and what a survivor of a
    crash has delivered, all survivors deliver.
    """
    return StackSpec(
        Fragment(),
        NakAck4(),
        Unicast(),
        Wire(),
        Discovery(),
        Failure(),
        Membership(),
        Udp(bind=bind),
    )


def loopback() -> StackSpec:
    """One machine: starts in well under a second. Promises what `lan` promises."""
    return lan(bind="127.0.0.1").replace(Discovery(timeout=0.1, interval=0.02, merge_interval=0.5))


def tcp(
    seeds: Sequence[str] = (),
    port: int = 0,
    bind: str = "127.0.0.1",
    *,
    dns: str = "",
    file: str = "",
    alone: str = "auto",
) -> StackSpec:
    """No multicast needed: a TCP connection per pair. Members are found by seeds, by a name in DNS
    (all its addresses), by a directory that they share, or by several of these.

    Promises what `lan` promises.
    """
    if dns:
        dns, port = with_port(dns, port)
    if not (seeds or dns or file) and alone == "auto":
        alone = "found"
    return lan().replace(
        Wire(mtu=520_000),  # A stream has no packets: half a megabyte of messages is one datagram.
        Discovery(multicast=False, seeds=tuple(seeds), dns=dns, file=file, alone=alone),
        Tcp(port=port, bind=bind),
    )


def with_port(dns: str, port: int) -> tuple[str, int]:
    """A name with a port and the port to listen at: DNS has none, so all members use the same."""
    _, colon, number = dns.rpartition(":")
    if colon:
        return dns, port or (int(number) if number.isdecimal() else 0)
    return f"{dns}:{port or PORT}", port or PORT


def stable() -> StackSpec:
    """One table per sender, purged by stability, and flow control by credits: the design of 2007.

    Promises what `lan` promises.
    """
    return lan().insert(Flow(), NakAck3(), Stability())


def bulk() -> StackSpec:
    """Large messages to large groups, where no slow receiver may hold the rest back.

    Promises order, and every message to all that keep up; who does not is skipped past a timeout,
    told so, and reported to the sender. Survivors of a crash may differ in the crashed sender's
    last messages, since receivers free a message as soon as their application has it.
    """
    window = NakAck4(
        max_bytes=64_000_000,  # Messages of up to half of it cost one ack each, and no more.
        flight_bytes=64_000_000,  # Pace sees to that.
        request_messages=32,  # So that a repair is no burst either.
        retain=False,
    )
    return lan().replace(window).insert(Large(), Pace(), Slow(policy="skip", bound=2.0))


PRESETS: dict[str, Callable[[], StackSpec]] = {
    "lan": lan,
    "loopback": loopback,
    "tcp": tcp,
    "stable": stable,
    "bulk": bulk,
}
"""Every preset by its name."""


def named(name: str) -> StackSpec:
    """The preset with this name. Raises ConfigError when there is none."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name}: there are {', '.join(PRESETS)}")
    return PRESETS[name]()
