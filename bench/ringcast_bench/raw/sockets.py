"""Sockets of the bare pairs: made, sized, closed."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"
BUFFER = 8_000_000
_FORCE = 33  # SO_RCVBUFFORCE: past the limit, with CAP_NET_ADMIN.
_MULTICAST_ALL = 49  # IP_MULTICAST_ALL: whether groups count that other sockets have joined.


def sender(host: str = HOST) -> socket.socket:
    """A socket that sends to groups and to one, and gets what is for it alone."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    grow(sock)
    return sock


def listener(groups: list[str], port: int, host: str = HOST) -> socket.socket:
    """A socket that hears these multicast groups, and no others."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)
    sock.bind(("", port))
    for group in groups:
        both = socket.inet_aton(group) + socket.inet_aton(host)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, both)
    grow(sock)
    return sock


def grow(sock: socket.socket) -> None:
    """Ask for a large receive buffer."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, _FORCE, BUFFER)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)


def buffer_of(sock: socket.socket) -> int:
    """Bytes of full datagrams that its receive buffer holds for sure.

    The kernel gives twice what it was asked for, and counts its own needs against it: a fifth is
    left to those. A datagram that finds no room all the same makes the run fail.
    """
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) * 4 // 5
