"""UDP sockets: own datagrams are filtered, buffers are asked for, targets are found."""

import logging
import select
import socket
import time

import pytest

from ringcast.core.address import Address, Peer
from ringcast.core.batch import FRAGMENT
from ringcast.core.codec import HEADER_SIZE, encode
from ringcast.core.express import encode_run
from ringcast.core.fragments import FRAGMENT_HEADER_SIZE, Assembly, Cutting, read_header
from ringcast.core.frames import Data
from ringcast.core.outbox import Datagram
from ringcast.core.view import ViewId
from ringcast.errors import ConfigError
from ringcast.runtime.own_filter import drop_own
from ringcast.runtime.udp import UdpTransport
from ringcast.sim.landing import PlainRoom
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
        got += map(bytes, transport.receive(32))
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


def test_the_next_fragment_of_a_large_message_lands_in_its_place() -> None:
    message = bytes(n % 251 for n in range(10_000))
    fragments = Cutting(message, 1, FRAGMENT_HEADER_SIZE + 1_000).cut(10)
    run = Data(ViewId(1, ME), 0, ME, 1, 0, 0, FRAGMENT, fragments, fragments.nbytes, fragments.size)
    sent = list(encode_run(7, ME, run, 1))
    header = read_header(fragments[0])
    assert header is not None
    assembly = Assembly(header, 1)
    assembly.settle(PlainRoom(len(message)))
    assembly.add(header, 1, fragments[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        spec = Udp(bind="127.0.0.1", multicast_port=free.getsockname()[1])
    a, b = UdpTransport(spec), UdpTransport(spec)
    a.open(ME, 7)
    b.open(OTHER, 7)
    b.landing.group = 7
    b.landing.aim(ME, assembly)
    try:
        a.send([datagram(b.endpoint, ME, b"for b alone")], ())
        assert received(b, 1)[0].endswith(b"for b alone")
        assert b.landing.offer is not None, "what is for one member is not written there"
        a.send(sent[1:2], ())
        assert received(b, 1) == [b""]
        landed = b.landing.begin(ViewId(1, ME))
        assert list(landed.payloads) == [fragments[1]]
        a.send(sent[3:5], ())
        assert received(b, 2) == [b"".join(d.buffers) for d in sent[3:5]]
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
