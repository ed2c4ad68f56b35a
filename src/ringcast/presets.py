"""Ready stacks. Each but `lan` is written as a difference from it.

from ringcast import presets

print(presets.tcp(seeds=["10.0.0.1:7800"], bind="0.0.0.0").to_toml())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringcast.control.discovery import Discovery, renamed_choice
from ringcast.control.failure_detector import FailureDetector
from ringcast.control.membership.settings import Membership
from ringcast.control.path_mtu import PathMtu
from ringcast.control.slow_members import SlowMembers
from ringcast.control.stability import Stability
from ringcast.errors import ConfigError, did_you_mean
from ringcast.layers.flow.layer import Flow
from ringcast.layers.fragment.layer import Fragment
from ringcast.layers.large import LargeMessages
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.pacing import Pacing
from ringcast.layers.unicast.settings import Unicast
from ringcast.layers.wire import Wire
from ringcast.spec import StackSpec
from ringcast.transports import Tcp, Udp

MULTICAST_IPV6 = "ff02::7777"
"""The group's multicast address where members are bound to IPv6 addresses."""
PORT = 7800
"""Where members listen that are found by a name, unless told otherwise."""

NO_WAY = (
    'presets.tcp() does not say where other members are: give seeds=["host:port", …], dns=… or'
    " file=…; for the first member, which the others have as a seed, give port=7800, or"
    ' when_alone="create" to tell them its endpoint yourself'
)


def lan(bind: str = "") -> StackSpec:
    """UDP multicast and fixed windows, at the address `bind`, IPv4 or IPv6, else on the usual
    interface.

    Promises every message of a view to all of its members, in order, once; and what a survivor of a
    crash has delivered, all survivors deliver.
    """
    is_six = ":" in str(bind)  # What is no text, Udp refuses in a sentence.
    return StackSpec(
        Fragment(),
        NakAck4(),
        Unicast(),
        Wire(),
        Discovery(),
        FailureDetector(),
        Membership(),
        PathMtu(),
        Udp(bind=bind, multicast=MULTICAST_IPV6) if is_six else Udp(bind=bind),
    )


def loopback() -> StackSpec:
    """One machine: starts in well under a second. Promises what `lan` promises."""
    return lan(bind="127.0.0.1").replace(
        Discovery(timeout=0.1, interval=0.02, merge_interval=0.5),
        FailureDetector(interval=0.3),
    )


def tcp(
    seeds: Sequence[str] = (),
    port: int = 0,
    bind: str = "127.0.0.1",
    *,
    dns: str = "",
    file: str = "",
    when_alone: str = "auto",
    alone: str | None = None,
) -> StackSpec:
    """No multicast needed: a TCP connection per pair. Members are found by seeds, by a name in DNS
    (all its addresses), by a directory that they share, or by several of these. A member with a
    port and none of these creates the group, and is the seed of the others.

    Promises what `lan` promises.
    """
    if isinstance(seeds, str):  # A sequence as well, of characters.
        raise ConfigError(f'seeds is the text "{seeds}": give a list, seeds=["{seeds}"]')
    if dns:
        dns, port = with_port(dns, port)
    when_alone = renamed_choice(when_alone, alone, "tcp(")
    if not (seeds or dns or file) and when_alone == "auto":
        if not port:
            raise ConfigError(NO_WAY)
        when_alone = "create"  # The others are given this member's port as their seed.
    spec = lan().without("PathMtu")
    return spec.replace(
        Wire(mtu=520_000),  # A stream has no packets: half a megabyte of messages is one datagram.
        Discovery(multicast=False, seeds=tuple(seeds), dns=dns, file=file, when_alone=when_alone),
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

    Promises order, and every message to all that keep up; a receiver that does not is skipped past
    a timeout, told so, and reported to the sender. Survivors of a crash may differ in the crashed
    sender's last messages, since receivers free a message as soon as their application has it.
    """
    window = NakAck4(
        max_bytes=64_000_000,  # Messages of up to half of it cost one ack each, and no more.
        flight_bytes=64_000_000,  # Pacing sees to that.
        request_messages=32,  # So that a repair is no burst either.
        retain=False,
    )
    return (
        lan()
        .replace(window)
        .insert(LargeMessages(), Pacing(), SlowMembers(policy="skip", bound=2.0))
    )


def _tcp() -> StackSpec:
    return tcp(when_alone="create")


_tcp.__doc__ = tcp.__doc__

PRESETS: dict[str, Callable[[], StackSpec]] = {
    "lan": lan,
    "loopback": loopback,
    "tcp": _tcp,
    "stable": stable,
    "bulk": bulk,
}
"""Every preset by its name."""


def named(name: str) -> StackSpec:
    """The preset with this name. Raises ConfigError when there is none."""
    if name not in PRESETS:
        names = ", ".join(PRESETS) + did_you_mean(name, PRESETS)
        raise ConfigError(f"unknown preset {name}: choose one of {names}")
    return PRESETS[name]()
