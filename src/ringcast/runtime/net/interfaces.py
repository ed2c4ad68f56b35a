"""What this machine has: interfaces with their addresses, routes, limits; read from the kernel."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path

_SIOCGIFCONF = 0x8912
_SIOCGIFFLAGS = 0x8913
_IFF_UP, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x8, 0x1000
_RTF_UP, _RTF_REJECT = 0x1, 0x200
_IFREQ_SIZE = 40 if struct.calcsize("P") == 8 else 32
_IFREQS_MAX = 1_024


@dataclass(frozen=True)
class Interface:
    """A network interface."""

    name: str
    is_up: bool
    is_loopback: bool
    has_multicast: bool
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """Where datagrams to a network go."""

    interface: str
    network: IPv4Network


def interfaces() -> list[Interface]:
    """Every interface; those without an address as well."""
    six = parse_inet6(_read("/proc/net/if_inet6"))
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        four = _inet4(probe)
        for _, name in socket.if_nameindex():
            flags = _flags(probe, name)
            found.append(
                Interface(
                    name,
                    bool(flags & _IFF_UP),
                    bool(flags & _IFF_LOOPBACK),
                    bool(flags & _IFF_MULTICAST),
                    (*four.get(name, ()), *six.get(name, ())),
                )
            )
    return found


def routes() -> list[Route]:
    """The IPv4 routes of the main table."""
    return parse_routes(_read("/proc/net/route"))


def route_to(address: str, known: Sequence[Route]) -> Route | None:
    """The route that an IPv4 address takes: the one with the smallest network around it."""
    target = IPv4Address(address)
    around = [route for route in known if target in route.network]
    return max(around, key=lambda route: route.network.prefixlen, default=None)


def kernel_limit(name: str) -> int | None:
    """A limit of the kernel's, "net.core.rmem_max" say; None where it is not told."""
    text = _read(f"/proc/sys/{name.replace('.', '/')}").strip()
    return int(text) if text.isdecimal() else None


# Parsing ------------------------------------------------------------------------------------------


def parse_inet6(text: str) -> dict[str, list[str]]:
    """The addresses per interface in the kernel's table; one of a link has its scope with it."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        digits, *_, name = line.split()
        address = IPv6Address(int(digits, 16))
        scope = f"%{name}" if address.is_link_local else ""
        found.setdefault(name, []).append(f"{address}{scope}")
    return found


def parse_routes(text: str) -> list[Route]:
    """The routes in the kernel's table that are up and lead somewhere."""
    found = []
    for line in text.splitlines()[1:]:
        name, destination, _, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & (_RTF_UP | _RTF_REJECT) == _RTF_UP:
            network = IPv4Network((_packed(destination), _prefix(mask)))
            found.append(Route(name, network))
    return found


def _packed(digits: str) -> bytes:
    """The table has addresses as numbers in the order of this machine."""
    return struct.pack("=I", int(digits, 16))


def _prefix(mask: str) -> int:
    return int(mask, 16).bit_count()


# Asking the kernel --------------------------------------------------------------------------------


def _inet4(probe: socket.socket) -> dict[str, list[str]]:
    space = array.array("B", bytes(_IFREQ_SIZE * _IFREQS_MAX))
    request = struct.pack("iP", len(space), space.buffer_info()[0])
    (size,) = struct.unpack_from("i", fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, request))
    found: dict[str, list[str]] = {}
    for at in range(0, size, _IFREQ_SIZE):
        entry = space[at : at + _IFREQ_SIZE].tobytes()
        name = entry[:16].partition(b"\0")[0].decode().partition(":")[0]
        found.setdefault(name, []).append(socket.inet_ntoa(entry[20:24]))
    return found


def _flags(probe: socket.socket, name: str) -> int:
    try:
        request = struct.pack("256s", name.encode()[:15])
        answer = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, request)
    except OSError:  # It has gone meanwhile.
        return 0
    flags: int = struct.unpack_from("H", answer, 16)[0]
    return flags


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
