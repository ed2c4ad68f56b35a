"""The largest datagram that leaves an interface in one packet, as the kernel tells it."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import ip_address

from ringcast.runtime.net.endpoints import interface_index

PACKET_DEFAULT = 1_500
"""Bytes of a packet where the kernel does not tell: those of Ethernet."""
_IP_MTU, _IPV6_MTU = 14, 24
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE = 10, 23, 3
_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
"""Bytes of the headers of IP and UDP."""


def forbid_fragments(sock: socket.socket) -> bool:
    """Have datagrams refused that do not fit a packet of the interface, and sent as they are
    otherwise, whatever routers have said (RFC 8899, 4.1); whether the kernel can."""
    with suppress(OSError):
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE)
        return True
    return False


def datagram_max(host: str, reach: str) -> int:
    """Bytes of UDP that fit one packet from this address to another, a multicast group say."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    plain = host.partition("%")[0]
    if ip_address(plain).is_loopback and not ip_address(reach.partition("%")[0]).is_multicast:
        reach = plain
    packet = PACKET_DEFAULT
    with socket.socket(family, socket.SOCK_DGRAM) as probe, suppress(OSError):
        if family == socket.AF_INET:
            level = socket.IPPROTO_IP
            probe.bind((plain, 0))
            probe.setsockopt(level, socket.IP_MULTICAST_IF, socket.inet_aton(plain))
            probe.connect((reach, 9))
            packet = probe.getsockopt(level, _IP_MTU)
        else:
            level, index = socket.IPPROTO_IPV6, interface_index(host)
            probe.bind((plain, 0, 0, index))
            probe.setsockopt(level, socket.IPV6_MULTICAST_IF, index)
            probe.connect((reach.partition("%")[0], 9, 0, index))
            packet = probe.getsockopt(level, _IPV6_MTU)
    return packet - _HEADERS[family]
