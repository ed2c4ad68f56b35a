"""The kernel's tables, and what they say about this machine."""

from ipaddress import IPv4Network

from ringcast.runtime.net.interfaces import (
    Route,
    interfaces,
    kernel_limit,
    parse_inet6,
    parse_routes,
    route_to,
)

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth1\t000000E0\t00000000\t0001\t0\t0\t0\t000000F0\t0\t0\t0
eth2\t000200C0\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0
*\t000200C0\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
INET6 = """\
fd000000000000000000000000000002 04 40 00 82     eth0
00000000000000000000000000000001 01 80 10 80       lo
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
"""


def test_routes_that_lead_somewhere() -> None:
    assert parse_routes(ROUTES) == [
        Route("eth0", IPv4Network("0.0.0.0/0")),
        Route("eth1", IPv4Network("224.0.0.0/4")),
    ]
    assert parse_routes("") == []


def test_the_smallest_network_wins() -> None:
    known = parse_routes(ROUTES)
    assert route_to("239.77.7.7", known) == known[1]
    assert route_to("10.0.0.1", known) == known[0]
    assert route_to("10.0.0.1", known[1:]) is None


def test_the_ipv6_addresses_of_interfaces_are_read() -> None:
    assert parse_inet6(INET6) == {
        "eth0": ["fd00::2", "fe80::fc:ff:fe00:1%eth0"],
        "lo": ["::1"],
    }
    assert parse_inet6("") == {}


def test_this_machine_has_a_loopback_interface() -> None:
    (loopback,) = [interface for interface in interfaces() if interface.name == "lo"]
    assert loopback.is_up
    assert loopback.is_loopback
    assert "127.0.0.1" in loopback.addresses


def test_limits_that_are_there_and_not() -> None:
    assert kernel_limit("net.core.no_such_limit") is None
    limit = kernel_limit("net.core.rmem_max")
    assert limit is None or limit > 0
