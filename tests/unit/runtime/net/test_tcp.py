"""TCP transports: who gets what, what waits for slow ones, and what is dropped and counted."""

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.codec import encode
from ringcast.core.wire.frames import Alive
from ringcast.core.wire.outbox import Datagram, Target
from ringcast.runtime.net.connection import HELLO_SIZE, LENGTH, encode_hello
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.net.tcp import TcpTransport
from ringcast.transports import Tcp

GROUP = 7
ME, OTHER, THIRD = Address(1), Address(2), Address(3)
SOON = 10.0


def datagram(target: Target, *buffers: bytes) -> Datagram:
    return Datagram(target, list(buffers), sum(map(len, buffers)))


@contextmanager
def transports(spec: Tcp, *addresses: Address) -> Iterator[list[TcpTransport]]:
    """Transports that know each other."""
    made = [TcpTransport(spec) for _ in addresses]
    try:
        for transport, address in zip(made, addresses, strict=True):
            transport.open(address, GROUP)
        for transport in made:
            for other, address in zip(made, addresses, strict=True):
                transport.learn(Peer(address, "", other.endpoint))
        yield made
    finally:
        for transport in made:
            transport.close()


def received(transport: TcpTransport, count: int, *others: TcpTransport) -> list[bytes]:
    """This many datagrams, while the others are attended to."""
    got: list[bytes] = []
    until = time.monotonic() + SOON
    while len(got) < count:
        assert time.monotonic() < until, f"{len(got)} of {count} came"
        select.select([fd for one in (transport, *others) for fd in one.filenos()], (), (), 0.1)
        for other in others:
            assert not list(other.receive(32))
        got += [bytes(view) for view in transport.receive(32)]
    return got


@contextmanager
def stranger(transport: TcpTransport, address: Address, buffer: int = 0) -> Iterator[socket.socket]:
    """The bare end of a connection, which the transport takes for that of a member."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.settimeout(SOON)
        sock.connect(split_endpoint(transport.endpoint))
        said = b"".join(encode(GROUP, address, [Alive()]))
        sock.sendall(encode_hello(GROUP, address) + LENGTH.pack(len(said)) + said)
        assert received(transport, 1) == [said]
        assert len(sock.recv(HELLO_SIZE, socket.MSG_WAITALL)) == HELLO_SIZE
        yield sock


def parsed(stream: bytes) -> list[bytes]:
    """The datagrams of a stream that ends with one."""
    found, at = [], 0
    while at < len(stream):
        (size,) = LENGTH.unpack_from(stream, at)
        at += LENGTH.size + size
        found.append(stream[at - size : at])
    assert at == len(stream)
    return found


def test_everybody_gets_what_is_for_everybody_and_the_rest_goes_where_it_should() -> None:
    with transports(Tcp(), ME, OTHER, THIRD) as (me, other, third):
        shapes = [
            [b"x" * 10] * 2_000,
            [bytes(9_000), b""],
            [b""],
            [bytes(60_000)],
            [b"y" * 999] * 60,
        ]
        to_all = [datagram(None, b"all", *shape) for shape in shapes * 5]
        me.send(
            [
                datagram(OTHER, b"one"),
                *to_all[:9],
                datagram(third.endpoint, b"by endpoint"),
                datagram(OTHER, b"two"),
                *to_all[9:],
            ],
            (ME, OTHER, THIRD),
        )
        whole = [b"".join(each.buffers) for each in to_all]
        assert received(other, 27, me) == [b"one", *whole[:9], b"two", *whole[9:]]
        assert received(third, 26, me) == [*whole[:9], b"by endpoint", *whole[9:]]
        assert me.stats()["sent_datagrams"] == 53
        assert other.stats()["received_datagrams"] == 27
        assert other.stats()["received_bytes"] == sum(map(len, whole)) + 6


def test_datagrams_that_go_nowhere_are_counted_one_by_one() -> None:
    with transports(Tcp(), ME) as (me,):
        me.send([datagram(None, b"x")] * 3 + [datagram(OTHER, b"y")], (ME, OTHER, THIRD))
        assert me.stats() == {"dropped_unknown_target": 7}


def test_one_who_reads_slowly_and_in_odd_pieces_gets_everything() -> None:
    with transports(Tcp(), ME) as (me,), stranger(me, OTHER, buffer=4_096) as slow:
        sent = [datagram(OTHER, bytes([number]) * 10, *[b"z" * 997] * 57) for number in range(90)]
        me.send(sent, ())
        size = sum(LENGTH.size + each.nbytes for each in sent)
        stream = b""
        while len(stream) < size:
            stream += slow.recv(77_777)
            assert not list(me.receive(32))  # Sends more, when there is room.
        assert parsed(stream) == [b"".join(each.buffers) for each in sent]
        assert me.stats()["sent_bytes"] == size


@pytest.mark.parametrize("queue_bytes", [65_536, 1_000_000])
@pytest.mark.parametrize("pieces", [1, 58])
def test_one_who_stops_reading_is_bounded_and_holds_nobody_up(
    queue_bytes: int, pieces: int
) -> None:
    spec = Tcp(queue_bytes=queue_bytes)
    with transports(spec, ME, OTHER) as (me, other), stranger(me, THIRD, buffer=4_096) as stuck:
        body = [bytes(57_000 // pieces)] * pieces
        sent = 0
        while me.stats().get("dropped_queue_full", 0) < 20:
            some = [datagram(None, bytes([sent % 251]), *body)]
            me.send(some, (ME, OTHER, THIRD))
            assert received(other, 1, me) == [b"".join(some[0].buffers)]
            sent += 1
        connection = me._table.find(THIRD)
        assert connection is not None
        assert queue_bytes - 60_000 < connection.queued <= queue_bytes
        reached = me.stats()["sent_datagrams"] - sent
        assert reached == sent - 20
        size = reached * (LENGTH.size + 1 + sum(map(len, body)))
        stream = b""
        while len(stream) < size:
            stream += stuck.recv(1 << 20)
            assert not list(me.receive(32))
        assert [each[0] for each in parsed(stream)] == [n % 251 for n in range(reached)]


def test_a_burst_that_does_not_fit_is_dropped_by_whole_datagrams() -> None:
    with transports(Tcp(queue_bytes=400_000), ME) as (me,), stranger(me, OTHER, 4_096) as stuck:
        burst = [
            datagram(OTHER, number.to_bytes(2, "big"), *[b"b" * 500] * 40) for number in range(999)
        ]
        me.send(burst, ())
        stats = me.stats()
        assert stats["sent_datagrams"] + stats["dropped_queue_full"] == 999
        assert stats["dropped_queue_full"] > 0
        stream = b""
        while len(stream) < stats["sent_bytes"]:
            stream += stuck.recv(1 << 20)
            assert not list(me.receive(32))
        numbers = [int.from_bytes(each[:2], "big") for each in parsed(stream)]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == stats["sent_datagrams"]


def test_garbage_ends_its_own_connection_only() -> None:
    with transports(Tcp(), ME, OTHER) as (me, other), stranger(me, THIRD) as bad:
        other.send([datagram(ME, b"before")], ())
        assert received(me, 1, other) == [b"before"]
        bad.sendall(b"\xff" * 100)
        other.send([datagram(ME, b"after")], ())
        assert received(me, 1, other) == [b"after"]
        while not me.stats().get("dropped_oversized"):
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert not list(me.receive(32))
        assert bad.recv(1) == b""


def test_what_is_queued_for_one_who_is_gone_is_counted() -> None:
    with transports(Tcp(), ME) as (me,):
        with stranger(me, OTHER, buffer=4_096) as gone:
            me.send([datagram(OTHER, bytes(60_000))] * 200, ())
            connection = me._table.find(OTHER)
            assert connection is not None
            waits = connection.queued
            assert waits > 0
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        while me._table.find(OTHER) is not None:
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert not list(me.receive(32))
        assert 0 < me.stats()["dropped_bytes"] <= waits


def test_a_caller_that_says_nothing_is_given_up_in_time() -> None:
    with transports(Tcp(connect_timeout=0.05), ME) as (me,):
        assert me.deadline == float("inf")
        with socket.create_connection(split_endpoint(me.endpoint), SOON) as silent:
            began = time.monotonic()
            while me.deadline == float("inf"):
                assert select.select(me.filenos(), (), (), SOON)[0]
                assert not list(me.receive(32))
            while not me.stats().get("ended_silent"):
                select.select(me.filenos(), (), (), max(0.0, me.deadline - time.monotonic()))
                assert not list(me.receive(32))
            assert time.monotonic() - began >= 0.05
            assert me.deadline == float("inf")
            assert len(silent.recv(100)) <= HELLO_SIZE


def test_who_has_said_its_name_is_not_given_up() -> None:
    with transports(Tcp(connect_timeout=0.05), ME) as (me,), stranger(me, OTHER):
        assert me.deadline == float("inf")
