"""UDP: one socket for this member's own traffic, and one that hears the multicast group.

Sends go out by the unicast socket, so a datagram's source is where its sender is reached. Datagrams
are received as `bytes`: small payloads are cut from them, and large ones stay views of them for as
long as the application wants; a buffer that is used again would have to be copied from. Fragments
of large messages are written straight to their place (core.landing).
"""

from __future__ import annotations

import errno
import logging
import select
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Sequence

from ringcast.core.address import Address, Peer
from ringcast.core.codec import source_of
from ringcast.core.landing import LANDED, Landing
from ringcast.core.outbox import GATHER_SIZE, Datagram
from ringcast.errors import ConfigError
from ringcast.runtime.endpoints import (
    Resolver,
    SocketAddress,
    advertised_host,
    bind_host,
    interface_index,
    join_endpoint,
)
from ringcast.runtime.own_filter import drop_own
from ringcast.transports import Udp

DATAGRAM_MAX = 65_536
PEERS_MAX = 4_096
"""Members and sources that are remembered; beyond it the oldest are forgotten."""
SMALL = 10_000
"""After a datagram below this size it is likely that no other has come yet, in bytes."""
GATHER_MAX = 512
"""The most buffers for one system call; the kernel takes 1,024."""
SEND_WAIT_MICROSECONDS = 20_000
"""How long a send may wait for the interface, which paces bursts; then it is dropped."""

_ELSEWHERE = {4: "192.0.2.1", 6: "2001:db8::1"}
"""Addresses that stand for anywhere else, to find the interface of the default route."""

log = logging.getLogger("ringcast.udp")


class UdpTransport:
    """Datagrams over UDP, with or without multicast."""

    deadline = float("inf")

    def __init__(self, spec: Udp) -> None:
        self.spec = spec
        self.counters: Counter[str] = Counter()
        self.landing = Landing()
        self.endpoint = ""
        self._ready = select.poll()
        self._sockets: list[socket.socket] = []
        self._peers: dict[Address, tuple[SocketAddress, ...]] = {}
        self._unresolved: dict[Address, Peer] = {}
        """Members at a host whose name is still being looked up."""
        self._sources: dict[SocketAddress, Address] = {}
        self._everybody: tuple[SocketAddress, ...] = ()
        self._complained: set[int] = set()
        self._is_filtered = False
        self._multicasts = 0
        """Datagrams sent to everybody at once, which come back to this member as well."""

    # Opening --------------------------------------------------------------------------------------

    def open(self, me: Address, group: int) -> None:
        """Bind the sockets. Raises ConfigError with what to change."""
        spec = self.spec
        reach = spec.multicast or _ELSEWHERE[6 if ":" in spec.bind else 4]
        host = bind_host(spec.bind, reach)
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._resolver = Resolver(self._family)
        try:
            self._unicast = self._bind((host.partition("%")[0], spec.port), shared=False, host=host)
            if spec.multicast:
                self._join_multicast(host, me)
        except BaseException:
            self.close()
            raise
        port = int(self._unicast.getsockname()[1])
        self.endpoint = join_endpoint(spec.advertise or advertised_host(host, reach), port)
        self._size_buffers()
        self._by_fd = {sock.fileno(): sock for sock in self._sockets}
        for fd in self._by_fd:
            self._ready.register(fd, select.POLLIN)

    def _bind(self, address: tuple[str, int], shared: bool, host: str) -> socket.socket:
        sock = socket.socket(self._family, socket.SOCK_DGRAM)
        self._sockets.append(sock)
        if shared:
            # Every member on this machine binds the multicast port, and each gets every datagram.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        index = interface_index(host) if self._family == socket.AF_INET6 else 0
        try:
            sock.bind((*address, 0, index) if self._family == socket.AF_INET6 else address)
        except OSError as error:
            raise ConfigError(_bind_failed(error, join_endpoint(*address), shared)) from None
        return sock

    def _join_multicast(self, host: str, me: Address) -> None:
        spec, sender = self.spec, self._unicast
        listener = self._bind((spec.multicast, spec.multicast_port), shared=True, host=host)
        try:
            if self._family == socket.AF_INET:
                interface = socket.inet_aton(host)
                group = socket.inet_aton(spec.multicast)
                level = socket.IPPROTO_IP
                listener.setsockopt(level, socket.IP_ADD_MEMBERSHIP, group + interface)
                sender.setsockopt(level, socket.IP_MULTICAST_IF, interface)
                sender.setsockopt(level, socket.IP_MULTICAST_TTL, spec.ttl)
                sender.setsockopt(level, socket.IP_MULTICAST_LOOP, 1)
                self._everybody = ((spec.multicast, spec.multicast_port),)
            else:
                index = interface_index(host)
                group = socket.inet_pton(socket.AF_INET6, spec.multicast)
                level = socket.IPPROTO_IPV6
                listener.setsockopt(level, socket.IPV6_JOIN_GROUP, group + struct.pack("@I", index))
                sender.setsockopt(level, socket.IPV6_MULTICAST_IF, index)
                sender.setsockopt(level, socket.IPV6_MULTICAST_HOPS, spec.ttl)
                sender.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 1)
                self._everybody = ((spec.multicast, spec.multicast_port, 0, index),)
        except OSError as error:
            raise ConfigError(
                f"cannot join the multicast address {spec.multicast} at {host} ({error.strerror}):"
                " give an address of 239.0.0.0/8 or ff02::/16 and an interface with multicast,"
                ' or multicast=""'
            ) from None
        self._is_filtered = drop_own(listener, me)

    def _size_buffers(self) -> None:
        wanted, got = self.spec.buffer, self.spec.buffer
        for sock in self._sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted)
            got = min(got, _receive_buffer(sock, wanted))
        wait = struct.pack("@ll", 0, SEND_WAIT_MICROSECONDS)
        self._unicast.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
        self.counters["receive_buffer"] = got
        if got < wanted:
            log.warning(
                "the kernel gives %d of %d bytes of socket buffer, so bursts may be lost:"
                " run `sysctl -w net.core.rmem_max=%d`, or ask for less with Udp(buffer=%d)",
                got,
                wanted,
                wanted,
                got,
            )

    def close(self) -> None:
        """Close the sockets."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def filenos(self) -> tuple[int, ...]:
        """The sockets: who waits for them directly is woken by the kernel in one step."""
        return tuple(sock.fileno() for sock in self._sockets)

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        lost = sum(_kernel_drops(sock) for sock in self._sockets)
        if self._is_filtered:  # The kernel counts what the filter keeps away, as well.
            lost -= self._multicasts
        return {**self.counters, "dropped_buffer_full": max(0, lost)}

    # Sending --------------------------------------------------------------------------------------

    def learn(self, peer: Peer) -> None:
        """Remember where a member is."""
        addresses = self._resolver.lookup(peer.endpoint)
        if addresses:
            self._remember(peer.address, addresses[:1])
        elif len(self._unresolved) < PEERS_MAX:
            self._unresolved[peer.address] = peer

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Send; what the kernel does not take is dropped and counted."""
        nbytes = copies = 0
        sendto, sendmsg = self._unicast.sendto, self._unicast.sendmsg
        for target, buffers, size in datagrams:
            addresses = self._addresses(target, members)
            count = len(buffers)
            is_gathered = GATHER_SIZE * count <= size and 1 < count <= GATHER_MAX
            data = b"" if is_gathered else b"".join(buffers)
            for address in addresses:
                try:
                    if is_gathered:
                        sendmsg(buffers, (), 0, address)
                    else:
                        sendto(data, address)
                except OSError as error:
                    self._on_send_error(error, address)
                nbytes += size
                copies += 1
            self._multicasts += addresses is self._everybody
        self.counters["sent_datagrams"] += copies
        self.counters["sent_bytes"] += nbytes

    def _addresses(
        self, target: Address | str | None, members: Sequence[Address]
    ) -> Sequence[SocketAddress]:
        if target is None:
            if self._everybody:
                return self._everybody
            known = self._peers
            return [known[member][0] for member in members if member in known]
        if isinstance(target, str):
            return self._resolver.lookup(target)
        addresses = self._peers.get(target, ())
        if not addresses and target in self._unresolved:
            self.learn(self._unresolved.pop(target))
            addresses = self._peers.get(target, ())
        if not addresses:
            self.counters["dropped_unknown_target"] += 1
            self._sources.clear()  # So that it is learned when it is heard again.
        return addresses

    def _on_send_error(self, error: OSError, address: SocketAddress) -> None:
        code = error.errno or 0
        self.counters[f"dropped_send_{errno.errorcode.get(code, 'error').lower()}"] += 1
        if code not in self._complained and code != errno.EAGAIN:
            self._complained.add(code)
            log.warning(
                "cannot send to %s:%d (%s): check route and firewall; said once, always counted",
                address[0],
                address[1],
                error.strerror,
            )

    # Receiving ------------------------------------------------------------------------------------

    def use(self, landing: Landing) -> None:
        """Have the kernel write the next datagram where it is expected to belong."""
        self.landing = landing
        landing.is_used = True

    def receive(self, limit: int) -> Iterator[bytes | memoryview]:
        """What is there, up to `limit` datagrams of each socket, each read when it is asked for.

        So the memory of one is free again for the next, and stays in the processor's cache.
        """
        for fd, _ in self._ready.poll(0):
            yield from self._read(self._by_fd[fd], limit)

    def _read(self, sock: socket.socket, limit: int) -> Iterator[bytes | memoryview]:
        sources = self._sources
        landing = self.landing if sock is not self._unicast else _NOWHERE
        count = nbytes = 0
        data: bytes | memoryview
        try:
            while count < limit:
                if landing.offer is None:
                    data, source = sock.recvfrom(DATAGRAM_MAX, socket.MSG_DONTWAIT)
                    size = len(data)
                else:
                    size, _, _, source = sock.recvmsg_into(landing.offer, 0, socket.MSG_DONTWAIT)
                    data = landing.landed(size)
                if source not in sources:
                    self._on_source(landing.heads if data is LANDED else data, source)
                count += 1
                nbytes += size
                yield data
                del data
                if landing.is_whole:
                    landing.is_whole = False
                    break
                if size < SMALL and not self._ready.poll(0):
                    break  # Nothing else is there: to be told so by an error costs more.
        except BlockingIOError:
            pass
        except OSError as error:  # Such as a port that nobody listens at, reported by the network.
            name = errno.errorcode.get(error.errno or 0, "error").lower()
            self.counters[f"receive_{name}"] += 1
        self.counters["received_datagrams"] += count
        self.counters["received_bytes"] += nbytes

    def _on_source(self, data: bytes | bytearray | memoryview, source: SocketAddress) -> None:
        """Somebody is heard from a new place: good enough for answers until it says where it is."""
        address = source_of(data)
        if address is None:
            return
        if len(self._sources) >= PEERS_MAX:
            self._sources.clear()
        self._sources[source] = address
        if address not in self._peers:
            self._remember(address, (source,))

    def _remember(self, address: Address, addresses: tuple[SocketAddress, ...]) -> None:
        self._peers.pop(address, None)
        if len(self._peers) >= PEERS_MAX:
            self._peers.pop(next(iter(self._peers)), None)
        self._peers[address] = addresses


_NOWHERE = Landing()
"""What comes for this member alone is no large message to the group."""


def _receive_buffer(sock: socket.socket, wanted: int) -> int:
    """Ask for a receive buffer; how much there is. The kernel doubles it for its own needs."""
    force = 33  # SO_RCVBUFFORCE: past the limit, for those who may.
    try:
        sock.setsockopt(socket.SOL_SOCKET, force, wanted)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted)
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2


def _kernel_drops(sock: socket.socket) -> int:
    """Datagrams that found no room in the socket's buffer."""
    memory_info, drops_at = 55, 8  # SO_MEMINFO, SK_MEMINFO_DROPS
    try:
        figures = struct.unpack("@9I", sock.getsockopt(socket.SOL_SOCKET, memory_info, 36))
    except (OSError, struct.error):
        return 0
    return int(figures[drops_at])


def _bind_failed(error: OSError, endpoint: str, shared: bool) -> str:
    if error.errno == errno.EADDRINUSE:
        which = "multicast_port" if shared else "port"
        return (
            f"{endpoint} is in use by another program: choose another {which}, or 0 for a free one"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{endpoint} is not an address of this machine: `ip address` lists those for bind"
    return f"cannot bind to {endpoint} ({error.strerror}): choose another address or port"
