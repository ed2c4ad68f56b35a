"""What is said about interfaces, routes, buffers and members that are found."""

from ipaddress import IPv4Network

from ringcast import presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Present
from ringcast.runtime.doctor.diagnosis import (
    diagnose,
    examine_buffer,
    examine_datagrams,
    examine_interfaces,
    examine_members,
    examine_route,
)
from ringcast.runtime.doctor.findings import Severity
from ringcast.runtime.net.interfaces import Interface, Route
from ringcast.transports import Memory, Udp

LO = Interface("lo", True, True, False, ("127.0.0.1", "::1"))
ETH = Interface("eth0", True, False, True, ("10.0.0.7",))
DUMB = Interface("tun0", True, False, False, ("10.9.0.1",))
DOWN = Interface("eth1", False, False, True, ())


def present(name: str, number: int) -> Present:
    """An answer of the coordinator with this name."""
    peer = Peer(Address(ord(name)), name, f"{name}:1")
    return Present(peer, ViewId(number, peer.address), peer, 0, 0)


def test_interfaces_are_listed_with_their_addresses() -> None:
    texts = [f.text for f in examine_interfaces("10.0.0.7", [LO, ETH, DUMB, DOWN])]
    assert texts == [
        "lo is up at 127.0.0.1, ::1",
        "eth0 is up at 10.0.0.7",
        "tun0 is up at 10.9.0.1, without multicast",
    ]


def test_an_interface_that_is_down() -> None:
    *_, finding = examine_interfaces("eth1", [LO, DOWN])
    assert finding.verdict is Severity.PROBLEM
    assert "`ip link set eth1 up`" in finding.text


def test_loopback_says_how_to_reach_others() -> None:
    *_, finding = examine_interfaces("127.0.0.1", [LO, ETH])
    assert finding.verdict is Severity.OK
    assert "--bind 10.0.0.7" in finding.text
    *_, alone = examine_interfaces("127.0.0.1", [LO])
    assert alone.text == "127.0.0.1 is for members on this machine only"


def test_the_route_for_multicast_is_found_or_missed() -> None:
    default = Route("eth0", IPv4Network("0.0.0.0/0"))
    (named,) = examine_route(Udp(bind="10.0.0.7"), [])
    (routed,) = examine_route(Udp(bind=""), [default])
    (lost,) = examine_route(Udp(bind=""), [])
    assert (named.verdict, routed.verdict, lost.verdict) == (
        Severity.OK,
        Severity.OK,
        Severity.PROBLEM,
    )
    assert "eth0" in routed.text
    assert "`ip route add 224.0.0.0/4" in lost.text
    assert list(examine_route(Udp(bind="::1", multicast="ff02::7777"), [])) == []


def test_a_buffer_that_is_too_small_is_named() -> None:
    fine = examine_buffer("receive", "net.core.rmem_max", 1_000, 2_000, "are lost")
    short = examine_buffer("receive", "net.core.rmem_max", 8_000_000, 212_992, "are lost")
    assert fine.verdict is Severity.OK
    assert short.verdict is Severity.WARNING
    assert "212,992 of 8,000,000" in short.text
    assert "`sysctl -w net.core.rmem_max=8000000`" in short.text


def test_the_size_of_datagrams_has_a_reason() -> None:
    offers = {"segmentation": True, "coalescing": False, "dont_fragment": True}
    found = examine_datagrams(1_472, 0, offers)
    assert found.verdict is Severity.OK
    assert found.text == (
        "they have up to 1,472 bytes, what fits a packet of the interface (segmentation offload:"
        ' yes, receive offload: no, "don\'t fragment": yes)'
    )
    assert "1,200 bytes, the number that was given" in examine_datagrams(1_472, 1_200, offers).text


def test_datagrams_above_a_packet_are_a_warning() -> None:
    found = examine_datagrams(1_472, 60_000, {})
    assert found.verdict is Severity.WARNING
    assert "Wire.mtu is 60,000, and 1,472 bytes fit a packet" in found.text


def test_members_that_are_found() -> None:
    (nobody,) = examine_members("g", [])
    (one,) = examine_members("g", [present("a", 3), present("a", 3)])
    (two,) = examine_members("g", [present("a", 3), present("b", 1)])
    (unknown,) = examine_members(None, [])
    assert nobody.verdict is Severity.WARNING
    assert one.verdict is unknown.verdict is Severity.OK
    assert "view 3, made by a at a:1" in one.text
    assert two.verdict is Severity.WARNING
    assert "2 parts, of a at a:1 and b at b:1" in two.text


def test_a_stack_without_a_network() -> None:
    for spec in (presets.lan().replace(Memory()), presets.lan().without("Udp")):
        (finding,) = diagnose(spec, "g")
        assert finding.verdict is Severity.OK
