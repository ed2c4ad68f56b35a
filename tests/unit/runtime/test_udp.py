"""UDP sockets: own datagrams are filtered, buffers are asked for, targets are found."""

import logging
import select
import socket
import time

import pytest

from ringcast.core.address import Address, Peer
from ringcast.core.codec import HEADER_SIZE, encode
from ringcast.core.outbox import Datagram
from ringcast.errors import ConfigError
from ringcast.runtime.own_filter import drop_own
from ringcast.runtime.udp import UdpTransport
from ringcast.transports import Udp

ME, OTHER = Address(0x1234_5678_9ABC_DEF0), Address(0x1234_5678_9ABC_DEF1)


def datagram(target: Address | str | None, source: Address, *payload: bytes) -> Datagram:
    """A datagram with a header, and whatever behind it."""
    buffers = [*encode(7, source, []), *payload]
    return Datagram(target, buffers, sum(map(len, buffers)))


def received(transport: UdpTransport, count: int) -> list[bytes]:
    """So many datagrams."""
    got: list[bytes] = []
    until = time.monotonic() + 10.0
    while len(got) < count:
        left = until - time.monotonic()
        assert select.select(transport.filenos(), (), (), max(left, 0.0))[0], "nothing came"
        got += transport.receive(32)
    return got


def test_the_kernel_drops_what_a_member_sent_itself() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10.0)
        assert drop_own(receiver, ME)
        for source in (ME, OTHER):
            sender.sendto(b"".join(encode(7, source, [])), receiver.getsockname())
        sender.sendto(b"short", receiver.getsockname())
        assert receiver.recv(100)[12:20] == OTHER.to_bytes(8, "big")
        assert receiver.recv(100) == b"short"


def test_datagrams_of_all_shapes_arrive() -> None:
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    a.open(ME, 7)
    b.open(OTHER, 7)
    try:
        a.learn(Peer(OTHER, "b", b.endpoint))
        shapes = [[b"x" * 10] * 2_000, [bytes(5_000), bytes(5_000)], [b""], [bytes(60_000)]]
        sent = [datagram(OTHER, ME, *shape) for shape in shapes]
        a.send(sent, ())
        assert received(b, 4) == [b"".join(d.buffers) for d in sent]
        b.send([datagram(ME, OTHER, b"by its source")], ())
        b.send([datagram(a.endpoint, OTHER, b"by its endpoint")], ())
        b.send([datagram(None, OTHER, b"as a member")], (ME, OTHER))
        assert [d[HEADER_SIZE:] for d in received(a, 3)] == [
            b"by its source",
            b"by its endpoint",
            b"as a member",
        ]
        b.send([datagram(Address(5), OTHER)], ())
        assert b.counters["dropped_unknown_target"] == 1
    finally:
        a.close()
        b.close()


def test_too_little_buffer_is_said_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    transport = UdpTransport(Udp(multicast="", buffer=2**31 - 1))
    with caplog.at_level(logging.WARNING, "ringcast"):
        transport.open(ME, 7)
    transport.close()
    (record,) = caplog.records
    assert "sysctl -w net.core.rmem_max=2147483647" in record.message


def test_a_network_that_cannot_be_reached_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    transport = UdpTransport(Udp(multicast=""))
    transport.open(ME, 7)
    try:
        with caplog.at_level(logging.WARNING, "ringcast"):
            for _ in range(3):
                transport.send([datagram("255.255.255.255:9", ME)], ())
        assert len([r for r in caplog.records if "cannot send to" in r.message]) == 1
        assert sum(n for name, n in transport.counters.items() if "dropped_send" in name) == 3
    finally:
        transport.close()


def test_what_is_no_multicast_address() -> None:
    transport = UdpTransport(Udp(multicast="127.0.0.1"))
    with pytest.raises(ConfigError, match="cannot join the multicast address"):
        transport.open(ME, 7)
