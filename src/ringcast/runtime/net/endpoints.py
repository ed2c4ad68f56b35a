"""Endpoints as text ("10.0.0.7:7800", "[::1]:7800", "db.example:7800") and as what sockets want.

Looking up a name may take seconds, so a thread of its own does it: until the answer is known,
datagrams for that name are dropped, and the protocols above send them again.
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Generic, TypeVar

from ringcast.control.discovery import is_endpoint
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.text import shortened
from ringcast.errors import ConfigError

SocketAddress = tuple[str, int] | tuple[str, int, int, int]

RESOLVED_TTL = 15.0
"""Seconds after which a name is looked up again."""
NAMES_MAX = 256
"""Names that are remembered."""
LOOKUPS_MAX = 8
"""Names that are looked up at a time: a peer may name any host as its endpoint."""
PLACES_MAX = 4_096
"""Members whose place is remembered, and as many others; beyond it the oldest are forgotten."""
ADDRESSES_MAX = 16
"""Addresses of one name that are used."""

NO_ADDRESS = (ConfigError, OSError, ValueError)
"""What looking up an endpoint may raise: a peer may send any text as its endpoint."""
SHOWN_MAX = 100
"""Characters of a wrong endpoint that an error shows."""

ELSEWHERE = {4: "192.0.2.1", 6: "2001:db8::1"}
"""Addresses that stand for anywhere else, to find the interface of the default route."""

_SIOCGIFADDR = 0x8915


def split_endpoint(endpoint: str) -> tuple[str, int]:
    """Host and port. Raises ConfigError."""
    if not is_endpoint(endpoint):
        shown = shortened(endpoint, SHOWN_MAX)
        raise ConfigError(f'"{shown}" is not an endpoint: give "host:port", a port from 1 to 65535')
    host, _, port = endpoint.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def join_endpoint(host: str, port: int) -> str:
    """The text for a host and a port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def numeric_address(endpoint: str, family: socket.AddressFamily) -> SocketAddress | None:
    """What a socket of this family wants, if the host is a number of that family; None for names,
    for what only the other family reaches, and for what is not an endpoint."""
    try:
        host, port = split_endpoint(endpoint)
        flags = socket.AI_NUMERICHOST
        found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM, flags=flags)
    except NO_ADDRESS:
        return None
    return _socket_address(found[0][4])


class Resolver:
    """Names to addresses, without ever waiting."""

    def __init__(self, family: socket.AddressFamily) -> None:
        self._family = family
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, tuple[SocketAddress, ...]]] = {}
        self._busy: set[str] = set()

    def lookup(self, endpoint: str) -> tuple[SocketAddress, ...]:
        """All addresses of an endpoint, as far as they are known by now."""
        known = self._known.get(endpoint)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        address = numeric_address(endpoint, self._family)
        if address is not None:
            self._remember(endpoint, (address,), float("inf"))
            return (address,)
        with self._lock:
            if endpoint not in self._busy and len(self._busy) < LOOKUPS_MAX:
                self._busy.add(endpoint)
                name = f"ringcast-resolve-{endpoint}"
                threading.Thread(target=self._ask, args=(endpoint,), name=name, daemon=True).start()
        return () if known is None else known[1]

    def _ask(self, endpoint: str) -> None:
        addresses: list[SocketAddress] = []
        try:
            host, port = split_endpoint(endpoint)
            found = socket.getaddrinfo(host, port, family=self._family, type=socket.SOCK_DGRAM)
            addresses = [_socket_address(entry[4]) for entry in found[:ADDRESSES_MAX]]
        except NO_ADDRESS:
            pass  # Asked again after the same pause.
        self._remember(endpoint, tuple(addresses), time.monotonic() + RESOLVED_TTL)
        with self._lock:
            self._busy.discard(endpoint)

    def _remember(self, endpoint: str, addresses: tuple[SocketAddress, ...], until: float) -> None:
        with self._lock:
            self._known.pop(endpoint, None)
            if len(self._known) >= NAMES_MAX:
                del self._known[next(iter(self._known))]
            self._known[endpoint] = (until, addresses)


Place = TypeVar("Place")


class KnownPlaces(Generic[Place]):
    """Where others are: members, and apart from them processes outside the view.

    Any process may claim any number of addresses, and pushes no member out.
    """

    __slots__ = ("_heard", "_members", "_others")

    def __init__(self) -> None:
        self._members: dict[Address, Place] = {}
        self._others: dict[Address, Place] = {}
        self._heard: set[Address] = set()
        """Those of the others whose datagrams come from their place."""

    def __contains__(self, address: Address) -> bool:
        return address in self._members or address in self._others

    def get(self, address: Address) -> Place | None:
        """Where this one is, if that is known."""
        found = self._members.get(address)
        return self._others.get(address) if found is None else found

    def member(self, address: Address) -> Place | None:
        """Where this one is, if it is a member and that is known."""
        return self._members.get(address)

    def is_heard(self, address: Address) -> bool:
        """Whether a process outside the view was heard at its place, so that no words change it."""
        return address in self._heard

    def hear(self, address: Address, place: Place) -> None:
        """A datagram in this one's name has arrived from a place: the first such place of a process
        outside the view is where it is answered, whatever it or others say of it."""
        if address not in self._heard and address not in self._members:
            self.put(address, place, is_claim=True)
            self._heard.add(address)

    def put(self, address: Address, place: Place, is_claim: bool) -> Address | None:
        """Remember a place; `is_claim` for that of a process outside the view. Returns the address
        that was forgotten for it."""
        self._members.pop(address, None)
        self._others.pop(address, None)
        self._heard.discard(address)
        table, forgotten = self._others if is_claim else self._members, None
        if len(table) >= PLACES_MAX:
            forgotten = next(iter(table))
            del table[forgotten]
            self._heard.discard(forgotten)
        table[address] = place
        return forgotten


class Unresolved:
    """Members at a host whose name is still being looked up, and apart from them processes outside
    the view that say so of themselves."""

    __slots__ = ("_claims", "_members")

    def __init__(self) -> None:
        self._members: dict[Address, Peer] = {}
        self._claims: dict[Address, Peer] = {}

    def put(self, peer: Peer, is_claim: bool) -> None:
        """Remember one; of very many the oldest is forgotten."""
        table = self._claims if is_claim else self._members
        table.pop(peer.address, None)
        if len(table) >= PLACES_MAX:
            del table[next(iter(table))]
        table[peer.address] = peer

    def pop(self, address: Address) -> tuple[Peer, bool] | None:
        """This one, and whether it is outside the view; it is forgotten here."""
        member, claim = self._members.pop(address, None), self._claims.pop(address, None)
        if member is not None:
            return member, False
        return None if claim is None else (claim, True)


def bind_failed(error: OSError, host: str, port: int) -> str:
    """Why a socket cannot listen, and what to change."""
    endpoint = join_endpoint(host, port)
    if error.errno == errno.EADDRINUSE:
        return f"{endpoint} is in use by another program: choose another port, or 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{endpoint} is not an address of this machine: `ip address` lists those for bind"
    return f"cannot listen at {endpoint} ({error.strerror}): choose another address or port"


# Interfaces ---------------------------------------------------------------------------------------


def bind_host(bind: str, reach: str) -> str:
    """The address to bind to, of an address or an interface; "" is the one that reaches `reach`."""
    if not bind:
        return _route_host(reach)
    try:
        ipaddress.ip_address(bind.partition("%")[0])
    except ValueError:
        return _interface_host(bind)
    return bind


def advertised_host(host: str, reach: str) -> str:
    """The host that others use to reach a member bound to `host`."""
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        return _route_host(reach)
    return host


def is_local(host: str) -> bool:
    """Whether an address stands for this machine alone; names of interfaces do not."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_remote(host: str) -> bool:
    """Whether this is an address of some machine, and not for this one alone."""
    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def interface_index(host: str) -> int:
    """The number of the interface that has an IPv6 address; 0 leaves the choice to the kernel."""
    host, _, scope = host.partition("%")
    if scope:
        return socket.if_nametoindex(scope)
    packed = socket.inet_pton(socket.AF_INET6, host).hex()
    table = Path("/proc/net/if_inet6")
    for line in table.read_text().splitlines() if table.exists() else ():
        fields = line.split()
        if fields[0] == packed:
            return int(fields[1], 16)
    return 0


def _route_host(reach: str) -> str:
    """The own address on the way to somewhere; nothing is sent to find that out."""
    family = socket.AF_INET6 if ":" in reach else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((reach, 9))
        except OSError as error:
            raise ConfigError(
                f"there is no route to {reach} ({error.strerror}): name the interface in `bind`"
            ) from None
        host = probe.getsockname()[0]
        assert isinstance(host, str)
        return host


def _interface_host(name: str) -> str:
    """The IPv4 address of an interface, or of a host name that is this machine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", name.encode()[:15])
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            return socket.inet_ntoa(answer[20:24])
        except (OSError, UnicodeError):
            pass
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise ConfigError(
            f'bind is "{shortened(name, SHOWN_MAX)}", which is not an address, interface or host'
            " here: see `ip address`"
        ) from None
    return str(found[0][4][0])


def _socket_address(found: tuple[object, ...]) -> SocketAddress:
    """A socket address without the parts that IPv4 has not."""
    if len(found) == 2:
        host, port = found
        return (str(host), int(str(port)))
    host, port, flow, scope = found
    return (str(host), int(str(port)), int(str(flow)), int(str(scope)))
