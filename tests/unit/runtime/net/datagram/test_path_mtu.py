"""The kernel tells how large a datagram fits a packet."""

import socket

import pytest

from ringcast.runtime.net.datagram.path_mtu import PACKET_DEFAULT, datagram_max, forbid_fragments


def test_the_packets_of_loopback_are_large() -> None:
    assert datagram_max("127.0.0.1", "239.77.7.7") >= 16_000
    assert datagram_max("127.0.0.1", "192.0.2.1") >= 16_000


@pytest.mark.parametrize(("host", "headers"), [("192.0.2.7", 28), ("2001:db8::7", 48)])
def test_an_address_of_no_interface_is_taken_for_ethernet(host: str, headers: int) -> None:
    reach = "192.0.2.1" if headers == 28 else "2001:db8::1"
    assert datagram_max(host, reach) == PACKET_DEFAULT - headers


@pytest.mark.parametrize(
    ("family", "level", "option"),
    [(socket.AF_INET, socket.IPPROTO_IP, 10), (socket.AF_INET6, socket.IPPROTO_IPV6, 23)],
)
def test_fragments_can_be_forbidden(family: socket.AddressFamily, level: int, option: int) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        assert forbid_fragments(sock)
        assert sock.getsockopt(level, option) == 3
