"""UDP sockets: own datagrams are filtered, buffers are asked for, targets are found."""

import errno
import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import FRAGMENT
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import encode
from ringcast.core.wire.fastpath import encode_run
from ringcast.core.wire.fragments import Assembly, Cutting, read_header
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import FRAGMENT_HEADER_SIZE, HEADER_SIZE
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.placement import Placement
from ringcast.core.wire.segments import Segments, one_by_one
from ringcast.errors import ConfigError
from ringcast.runtime.net.datagram.offload import coalesce
from ringcast.runtime.net.datagram.own_filter import drop_own
from ringcast.runtime.net.endpoints import LOOKUPS_MAX, Resolver
from ringcast.runtime.net.udp import UdpTransport
from ringcast.sim.engine.placement import PlainBuffer
from ringcast.transports import Udp

ME, OTHER = Address(0x1234_5678_9ABC_DEF0), Address(0x1234_5678_9ABC_DEF1)


def datagram(target: Address | str | None, source: Address, *payload: bytes) -> Datagram:
    """A datagram with a header, and whatever behind it."""
    buffers = [*encode(7, source, []), *payload]
    return Datagram(target, buffers, sum(map(len, buffers)))


@contextmanager
def opened(spec: Udp) -> Iterator[UdpTransport]:
    """A transport that is closed at the end."""
    transport = UdpTransport(spec)
    transport.open(ME, 7)
    try:
        yield transport
    finally:
        transport.close()


def received(transport: UdpTransport, count: int) -> list[bytes]:
    """This many datagrams."""
    got: list[bytes] = []
    until = time.monotonic() + 10.0
    while len(got) < count:
        left = until - time.monotonic()
        assert select.select(transport.filenos(), (), (), max(left, 0.0))[0], "nothing came"
        got += map(bytes, one_by_one(transport.receive(32)))
    return got


def test_names_that_strangers_claim_push_no_member_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.endpoints.PLACES_MAX", 3)
    member = Peer(OTHER, "", "127.0.0.1:9")
    with opened(Udp(bind="127.0.0.1", multicast="")) as transport:
        transport.learn(member)
        transport.learn(Peer(Address(5), "", "member.example:9"))  # Its name is asked for.
        claims = [Peer(Address(100 + n), "", "slow.example:9") for n in range(9)]
        with monkeypatch.context() as patch:
            patch.setattr(Resolver, "lookup", lambda resolver, endpoint: ())
            for peer in claims:
                transport.learn(peer, is_claim=True)
        monkeypatch.setattr(Resolver, "lookup", lambda resolver, endpoint: (("127.0.0.1", 9),))
        transport.send([datagram(peer.address, ME) for peer in claims], ())
        assert transport._places.peers.member(OTHER) == ("127.0.0.1", 9)
        assert not any(transport._places.peers.member(peer.address) for peer in claims)
        transport.send([datagram(Address(5), ME)], ())
        assert transport._places.peers.member(Address(5)) == ("127.0.0.1", 9)


def test_names_of_strangers_keep_no_configured_name_from_being_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, found, asked = threading.Event(), threading.Event(), set[str]()

    def wait(resolver: Resolver, endpoint: str) -> None:
        asked.add(endpoint)
        if endpoint == "seed.example:9":
            found.set()
        answered.wait(10.0)

    monkeypatch.setattr(Resolver, "_ask", wait)
    with opened(Udp(bind="127.0.0.1", multicast="")) as transport:
        for number in range(50):
            claim = Peer(Address(100 + number), "", f"host-{number}.example:9")
            transport.learn(claim, is_claim=True)
        transport.send([datagram("seed.example:9", ME)], ())
        assert found.wait(10.0)
        answered.set()
        assert len(asked) == LOOKUPS_MAX + 1


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


def test_a_process_outside_the_view_is_answered_where_it_is_heard() -> None:
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as third:
        third.bind(("127.0.0.1", 0))
        third.setblocking(False)
        elsewhere = Peer(OTHER, "b", f"127.0.0.1:{third.getsockname()[1]}")
        a.open(ME, 7)
        b.open(OTHER, 7)
        try:
            b.send([datagram(a.endpoint, OTHER, b"a question")], ())
            received(a, 1)
            a.learn(elsewhere, is_claim=True)
            a.send([datagram(OTHER, ME, b"the answer")], ())
            assert received(b, 1)[0].endswith(b"the answer")
            with pytest.raises(BlockingIOError):
                third.recv(100)
            a.learn(elsewhere)  # A view says where it is.
            a.send([datagram(OTHER, ME, b"to a member")], ())
            assert select.select([third], (), (), 10.0)[0]
        finally:
            a.close()
            b.close()


def test_no_words_of_a_stranger_have_its_answer_sent_to_a_third_process() -> None:
    """Neither a datagram in another name from the same place, nor what it said of itself before."""
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    first, second, third = (Address(OTHER + number) for number in range(3))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
        victim.bind(("127.0.0.1", 0))
        victim.setblocking(False)
        there = f"127.0.0.1:{victim.getsockname()[1]}"
        a.open(ME, 7)
        b.open(first, 7)
        try:
            a.learn(Peer(third, "named by another one", there), is_claim=True)
            b.send([datagram(a.endpoint, name, b"?") for name in (first, second, third)], ())
            received(a, 3)
            for name in (first, second, third):
                a.learn(Peer(name, "b", there), is_claim=True)
            a.send([datagram(name, ME, b"!") for name in (first, second, third)], ())
            assert [data[-1:] for data in received(b, 3)] == [b"!"] * 3
            with pytest.raises(BlockingIOError):
                victim.recv(100)
        finally:
            a.close()
            b.close()


def test_each_segment_of_a_stranger_is_looked_at() -> None:
    a, place = UdpTransport(Udp(multicast="")), ("127.0.0.1", 9)
    names = [Address(OTHER + number) for number in range(3)]
    heads = [b"".join(datagram(None, name).buffers) for name in names]
    a.open(ME, 7)
    try:
        a._places.hear_segments(Segments(b"".join(heads), len(heads[0])), place)
        for name in names:
            a.learn(Peer(name, "", "127.0.0.1:10"), is_claim=True)
        assert [a._places.peers.get(name) for name in names] == [place] * 3
    finally:
        a.close()


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


class Unable:
    """A socket whose device cannot cut datagrams."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def sendmsg(
        self, buffers: list[bytes], ancillary: list[tuple[int, int, bytes]], *to: Any
    ) -> int:
        if ancillary:
            raise OSError(errno.EIO, "the device cannot")
        return self._sock.sendmsg(buffers, ancillary, *to)

    def __getattr__(self, name: str) -> object:
        return getattr(self._sock, name)


@pytest.mark.parametrize("can_send", [True, False])
@pytest.mark.parametrize("can_receive", [True, False])
def test_many_datagrams_of_one_size_leave_and_arrive_in_one_call(
    can_send: bool, can_receive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    a.open(ME, 7)
    b.open(OTHER, 7)
    try:
        b._coalesces = can_receive and coalesce(b._unicast)
        if not can_send:
            monkeypatch.setattr(a, "_unicast", Unable(a._unicast))
        a.learn(Peer(OTHER, "b", b.endpoint))
        sizes = [1_400] * 50 + [300, 1_400, 20_000, 1_400, 1_400, 1_400]
        sent = [datagram(OTHER, ME, bytes([n]), bytes(size)) for n, size in enumerate(sizes)]
        a.send(sent, ())
        assert received(b, len(sent)) == [b"".join(d.buffers) for d in sent]
        assert a.counters["sent_datagrams"] == b.counters["received_datagrams"] == len(sent)
        assert a.counters["sent_bytes"] == b.counters["received_bytes"]
    finally:
        a.close()
        b.close()


def test_what_the_kernel_has_joined_counts_once_against_the_limit() -> None:
    """Or a receiver would do all that follows a receive for each train of a fast sender."""
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    a.open(ME, 7)
    b.open(OTHER, 7)
    try:
        b._coalesces = coalesce(b._unicast)
        if not (b._coalesces and a._segments):
            pytest.skip("the kernel has no segmentation offload")
        a.learn(Peer(OTHER, "b", b.endpoint))
        sent = [datagram(OTHER, ME, bytes(size)) for size in [1_400] * 40 + [1_300] * 40]
        a.send(sent, ())
        assert select.select(b.filenos(), (), (), 10.0)[0], "nothing came"
        assert len(list(one_by_one(b.receive(2)))) == len(sent)
    finally:
        a.close()
        b.close()


def test_the_next_fragment_of_a_large_message_is_placed() -> None:
    message = bytes(n % 251 for n in range(10_000))
    fragments = Cutting(message, 1, FRAGMENT_HEADER_SIZE + 1_000).cut(10)
    run = Data(ViewId(1, ME), 0, ME, 1, 0, 0, FRAGMENT, fragments, fragments.nbytes, fragments.size)
    sent = list(encode_run(7, ME, run, 1))
    header = read_header(fragments[0])
    assert header is not None
    assembly = Assembly(header, 1)
    assembly.use(PlainBuffer(len(message)))
    assembly.add(header, 1, fragments[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        spec = Udp(bind="127.0.0.1", multicast_port=free.getsockname()[1])
    a, b = UdpTransport(spec), UdpTransport(spec)
    a.open(ME, 7)
    b.open(OTHER, 7)
    b.placement = Placement(7)
    b.placement.advertise(ME, assembly)
    try:
        a.send([datagram(b.endpoint, ME, b"for b alone")], ())
        assert received(b, 1)[0].endswith(b"for b alone")
        assert b.placement.advertised is not None, "what is for one member is not written there"
        a.send(sent[1:2], ())
        assert received(b, 1) == [b""]
        placed = b.placement.start(ViewId(1, ME))
        assert list(placed.payloads) == [fragments[1]]
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


@pytest.mark.parametrize("count", [1, 3])
def test_a_datagram_that_the_kernel_refuses_as_too_large_is_told(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    transport = UdpTransport(Udp())
    transport.open(ME, 7)
    try:
        transport.forbid_fragments()
        monkeypatch.setattr("ringcast.runtime.net.udp.datagram_max", lambda *_: 1_272)
        transport.send([datagram(None, ME, bytes(65_508))] * count, ())
        assert transport.shrunk == 1_272
        assert transport.stats()["dropped_too_large"] == count
        assert transport.offers()["dont_fragment"]
    finally:
        transport.close()


def test_a_refused_datagram_changes_nothing_where_fragments_are_allowed() -> None:
    transport = UdpTransport(Udp())
    transport.open(ME, 7)
    try:
        transport.send([datagram(None, ME, bytes(65_508))], ())
        assert transport.shrunk == 0
        assert "dropped_too_large" not in transport.stats()
    finally:
        transport.close()


def test_sources_and_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.datagram.places.SOURCES_MAX", 3)
    heard = b"".join(encode(7, OTHER, []))
    with opened(Udp(bind="127.0.0.1", multicast="")) as transport:
        for port in range(1, 11):
            transport._places.hear(heard, ("127.0.0.1", port))
            transport.learn(Peer(Address(port), "", f"127.0.0.1:{port}"))
        assert len(transport._places.sources) <= 3
        assert len(transport._places.endpoints) <= 3
