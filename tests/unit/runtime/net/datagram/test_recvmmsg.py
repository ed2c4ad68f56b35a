"""Many datagrams are read in one system call, whatever their sizes and senders."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.codec import encode
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.segments import Segments, one_by_one
from ringcast.runtime.net.datagram.offload import can_segment, coalesce, segment_request
from ringcast.runtime.net.datagram.recvmmsg import LEARN, SLOTS, ManyReader, has_recvmmsg
from ringcast.runtime.net.endpoints import SocketAddress
from ringcast.runtime.net.udp import UdpTransport
from ringcast.transports import Udp

pytestmark = pytest.mark.skipif(not has_recvmmsg(), reason="the C library has no recvmmsg")

ME, OTHER = Address(0x1234_5678_9ABC_DEF0), Address(0x1234_5678_9ABC_DEF1)
SIZE = 1_000
Heard = list[tuple[bytes, SocketAddress]]


@contextmanager
def sockets(
    count: int, family: socket.AddressFamily = socket.AF_INET
) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """A receiver, and senders that are connected to it."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with ExitStack() as stack:
        receiver = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        receiver.bind((host, 0))
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        senders = []
        for _ in range(count):
            sender = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            sender.bind((host, 0))
            sender.connect(receiver.getsockname())
            senders.append(sender)
        yield receiver, senders


def expecting(size: int) -> ManyReader:
    """A reader that has learned a size."""
    reader = ManyReader()
    for _ in range(LEARN + 1):
        reader.learn(size)
    assert reader.size == size
    return reader


def flat(read: list[tuple[bytes | Segments, SocketAddress]]) -> Heard:
    """Each datagram by itself."""
    return [(bytes(one), source) for some, source in read for one in one_by_one([some])]


def heard(receiver: socket.socket, size: int, count: int) -> Heard:
    """This many datagrams, read with this size in mind whatever came before."""
    got: Heard = []
    while len(got) < count:
        assert select.select([receiver], (), (), 10.0)[0], "nothing came"
        found, read = expecting(size).read(receiver)
        assert len(flat(read)) == found <= SLOTS
        got += flat(read)
    return got


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_datagrams_of_one_size_come_as_one_buffer(family: socket.AddressFamily) -> None:
    with sockets(1, family) as (receiver, (sender,)):
        for number in range(SLOTS + 3):
            sender.send(bytes([number]) * SIZE)
        reader = expecting(SIZE)
        found, read = reader.read(receiver)
        ((whole, source),) = read
        assert found == SLOTS
        assert isinstance(whole, Segments)
        assert whole.size == SIZE
        assert list(whole) == [bytes([number]) * SIZE for number in range(SLOTS)]
        assert source == sender.getsockname()
        found, read = reader.read(receiver)
        assert found == len(flat(read)) == 3


def test_the_last_of_a_run_may_be_shorter() -> None:
    with sockets(1) as (receiver, (sender,)):
        sizes = [SIZE, SIZE, 7, SIZE, SIZE]
        for size in sizes:
            sender.send(bytes(size))
        found, read = expecting(SIZE).read(receiver)
        assert found == len(sizes)
        assert [len(some.data) for some, _ in read if isinstance(some, Segments)] == [2_007, 2_000]


def test_what_two_senders_have_sent_is_not_joined() -> None:
    with sockets(2) as (receiver, (a, b)):
        for sender in (a, a, b, b, a):
            sender.send(bytes(SIZE))
        found, read = expecting(SIZE).read(receiver)
        assert found == 5
        assert [source for _, source in read] == [s.getsockname() for s in (a, b, a)]


@settings(max_examples=100, deadline=None)
@given(
    expected=st.sampled_from([1, 100, SIZE, 32_000]),
    sizes=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from([0, 1, 99, 100, 101, SIZE, SIZE, SIZE, SIZE + 1, 40_000, 65_507]),
        ),
        min_size=1,
        max_size=2 * SLOTS,
    ),
)
def test_every_datagram_is_read_as_it_was_sent(expected: int, sizes: list[tuple[int, int]]) -> None:
    with sockets(2) as (receiver, senders):
        sent: Heard = []
        got: Heard = []
        for number, (who, size) in enumerate(sizes):
            payload = bytes([number]) * size
            senders[who].send(payload)
            sent.append((payload, senders[who].getsockname()))
            if len(sent) - len(got) == SLOTS // 2:  # So that all of it finds room.
                got += heard(receiver, expected, len(sent) - len(got))
        got += heard(receiver, expected, len(sent) - len(got))
        assert got == sent


def test_what_the_kernel_has_joined_is_cut_again_and_read_one_by_one() -> None:
    with sockets(1) as (receiver, (sender,)):
        if not (can_segment(sender) and coalesce(receiver)):
            pytest.skip("the kernel has no segmentation offload")
        data = bytes(n % 251 for n in range(5 * SIZE + 20))
        sender.sendmsg((data,), segment_request(SIZE))
        reader = expecting(SIZE)
        _, read = reader.read(receiver)
        assert [one for one, _ in flat(read)] == [
            data[at : at + SIZE] for at in range(0, len(data), SIZE)
        ]
        assert reader.size == 0


def test_an_empty_socket_is_no_failure() -> None:
    with sockets(1) as (receiver, _), pytest.raises(BlockingIOError):
        expecting(SIZE).read(receiver)


def test_a_size_is_expected_after_some_datagrams_of_it_in_a_row() -> None:
    reader = ManyReader()
    for size in [SIZE] * LEARN + [7] + [SIZE] * LEARN:
        reader.learn(size)
        assert reader.size == 0
    reader.learn(SIZE)
    assert reader.size == SIZE


def test_few_datagrams_or_others_are_read_one_by_one_again() -> None:
    with sockets(1) as (receiver, (sender,)):
        for sizes in ([SIZE, SIZE], [SIZE, 9, 8, 7, 6]):
            for size in sizes:
                sender.send(bytes(size))
            reader = expecting(SIZE)
            assert len(flat(reader.read(receiver)[1])) == len(sizes)
            assert reader.size == 0


def test_a_member_reads_many_datagrams_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.udp.datagram_max", lambda host, reach: 1_472)
    calls = 0
    read = ManyReader.read

    def counted(
        reader: ManyReader, sock: socket.socket
    ) -> tuple[int, list[tuple[bytes | Segments, SocketAddress]]]:
        nonlocal calls
        calls += 1
        return read(reader, sock)

    monkeypatch.setattr(ManyReader, "read", counted)
    a, b = UdpTransport(Udp(multicast="")), UdpTransport(Udp(multicast=""))
    a.open(ME, 7)
    b.open(OTHER, 7)
    try:
        if not b._coalesces:
            pytest.skip("the kernel joins no datagrams")
        a._segments = False
        a.learn(Peer(OTHER, "b", b.endpoint))
        head = encode(7, ME, [])
        for n in range(200):
            buffers = [*head, bytes([n]) * 1_400]
            a.send([Datagram(OTHER, buffers, sum(map(len, buffers)))], ())
        got: list[bytes] = []
        until = time.monotonic() + 10.0
        while len(got) < 200:
            assert select.select(b.filenos(), (), (), max(0.0, until - time.monotonic()))[0]
            got += map(bytes, one_by_one(b.receive(32)))
        assert [one[-1] for one in got] == list(range(200))
        assert b.counters["received_datagrams"] == 200
        assert b.counters["received_bytes"] == a.counters["sent_bytes"]
        assert 200 / SLOTS < calls <= 20
    finally:
        a.close()
        b.close()
