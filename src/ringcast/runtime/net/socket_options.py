"""What a socket is asked for and tells: its buffers, its losses, what the network reports of
datagrams that it has sent, and why it cannot be bound."""

from __future__ import annotations

import errno
import logging
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ringcast.errors import ConfigError
from ringcast.runtime.net.endpoints import SocketAddress, interface_index
from ringcast.transports import Udp

_IP_RECVERR, _IPV6_RECVERR = 11, 25
_EXTENDED_ERROR = struct.Struct("@IBBBBII")
"""sock_extended_err: the error's number first."""
_ANCILLARY_SIZE = 256
REPORTS_MAX = 64
"""The most reports that are read at a time; the rest of them say the same."""
SEND_WAIT_MICROSECONDS = 20_000
"""How long a send may wait for the interface, which paces bursts; then it is dropped."""

log = logging.getLogger("ringcast.udp")


def ask_for_buffer(sock: socket.socket, wanted: int) -> int:
    """Ask for a receive buffer; how much there is. The kernel doubles it for its own needs."""
    force = 33  # SO_RCVBUFFORCE: past the limit, for those who may.
    try:
        sock.setsockopt(socket.SOL_SOCKET, force, wanted)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted)
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2


def size_buffers(sockets: Iterable[socket.socket], wanted: int) -> int:
    """Ask for send and receive buffers of this size; the least receive buffer that there is."""
    least = wanted
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted)
        least = min(least, ask_for_buffer(sock, wanted))
    if least < wanted:
        log.warning(
            "the kernel gives %d of %d bytes of socket buffer, so bursts may be lost:"
            " run `sysctl -w net.core.rmem_max=%d`, or ask for less with Udp(buffer=%d)",
            least,
            wanted,
            wanted,
            least,
        )
    return least


def bound_waiting(sock: socket.socket) -> None:
    """Bound how long a send waits for the interface, which paces bursts."""
    wait = struct.pack("@ll", 0, SEND_WAIT_MICROSECONDS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)


def kernel_drops(sock: socket.socket) -> int:
    """Datagrams that found no room in the socket's buffer."""
    memory_info, drops_at = 55, 8  # SO_MEMINFO, SK_MEMINFO_DROPS
    try:
        figures = struct.unpack("@9I", sock.getsockopt(socket.SOL_SOCKET, memory_info, 36))
    except (OSError, struct.error):
        return 0
    return int(figures[drops_at])


def report_errors(sock: socket.socket) -> None:
    """Have the kernel keep what the network reports of datagrams that a socket has sent."""
    with suppress(OSError):  # Not on this system: crashes are noticed by silence.
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)


def reported_errors(sock: socket.socket) -> Iterator[tuple[int, SocketAddress]]:
    """The errors that are reported, and where the datagrams were sent to; they are read once."""
    if not hasattr(socket, "MSG_ERRQUEUE"):  # Not on this system.
        return
    for _ in range(REPORTS_MAX):
        try:
            flags = socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT
            _, ancillary, _, place = sock.recvmsg(0, _ANCILLARY_SIZE, flags)
        except OSError:
            return
        for level, kind, data in ancillary:
            is_error = (level, kind) in (
                (socket.IPPROTO_IP, _IP_RECVERR),
                (socket.IPPROTO_IPV6, _IPV6_RECVERR),
            )
            if is_error and len(data) >= _EXTENDED_ERROR.size:
                yield _EXTENDED_ERROR.unpack_from(data)[0], place


def join_group(
    listener: socket.socket, sender: socket.socket, host: str, spec: Udp
) -> SocketAddress:
    """Let a socket hear the multicast group, and another send to it; returns its address.

    Raises ConfigError.
    """
    try:
        if listener.family == socket.AF_INET:
            interface = socket.inet_aton(host)
            group = socket.inet_aton(spec.multicast)
            level = socket.IPPROTO_IP
            listener.setsockopt(level, socket.IP_ADD_MEMBERSHIP, group + interface)
            sender.setsockopt(level, socket.IP_MULTICAST_IF, interface)
            sender.setsockopt(level, socket.IP_MULTICAST_TTL, spec.ttl)
            sender.setsockopt(level, socket.IP_MULTICAST_LOOP, 1)
            return spec.multicast, spec.multicast_port
        index = interface_index(host)
        group = socket.inet_pton(socket.AF_INET6, spec.multicast)
        level = socket.IPPROTO_IPV6
        listener.setsockopt(level, socket.IPV6_JOIN_GROUP, group + struct.pack("@I", index))
        sender.setsockopt(level, socket.IPV6_MULTICAST_IF, index)
        sender.setsockopt(level, socket.IPV6_MULTICAST_HOPS, spec.ttl)
        sender.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 1)
        return spec.multicast, spec.multicast_port, 0, index
    except OSError as error:
        raise ConfigError(
            f"cannot join the multicast address {spec.multicast} at {host} ({error.strerror}):"
            " give an address of 239.0.0.0/8 or ff02::/16 and an interface with multicast,"
            ' or multicast=""'
        ) from None


def bind_failed(error: OSError, endpoint: str, shared: bool) -> str:
    if error.errno == errno.EADDRINUSE:
        which = "multicast_port" if shared else "port"
        return (
            f"{endpoint} is in use by another program: choose another {which}, or 0 for a free one"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{endpoint} is not an address of this machine: `ip address` lists those for bind"
    return f"cannot bind to {endpoint} ({error.strerror}): choose another address or port"
