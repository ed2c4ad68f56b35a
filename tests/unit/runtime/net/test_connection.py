"""One connection: datagrams are cut from the stream wherever it breaks, and lengths are bounded."""

import socket
from collections.abc import Iterator

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.wire.outbox import Datagram
from ringcast.runtime.net.connection import (
    HELLO_SIZE,
    LENGTH,
    LENGTH_MAX,
    Connection,
    ReadBuffer,
    chunks,
    decode_hello,
    encode_hello,
)
from ringcast.runtime.net.stream.broken import Broken


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection and the other end of it."""
    mine, other = socket.socketpair()
    mine.setblocking(False)
    with mine, other:
        yield Connection(mine, None, 0.0), other


def framed(*datagrams: bytes) -> bytes:
    """Datagrams as they look on the way."""
    return b"".join(LENGTH.pack(len(datagram)) + datagram for datagram in datagrams)


def datagram(*buffers: Payload) -> Datagram:
    """A datagram to everybody."""
    return Datagram(None, list(buffers), sum(map(len, buffers)))


def read(connection: Connection, buffer: ReadBuffer) -> list[bytes]:
    buffer.read(connection)
    return [bytes(datagram) for datagram in buffer.cut()]


def test_datagrams_come_whole_wherever_the_stream_breaks(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, other = pair
    datagrams = [b"", b"a", b"bc" * 100, bytes(300)]
    stream = framed(*datagrams)
    for step in (1, 3, 4, 7, 100, len(stream)):
        buffer, got = ReadBuffer(), list[bytes]()
        for at in range(0, len(stream), step):
            other.sendall(stream[at : at + step])
            got += read(connection, buffer)
        assert got == datagrams
        assert len(buffer) == 0


def test_connections_that_take_turns_in_the_middle_of_datagrams(
    pair: tuple[Connection, socket.socket],
) -> None:
    mine, another = socket.socketpair()
    mine.setblocking(False)
    buffer = ReadBuffer()
    with mine, another:
        ends = {pair[0]: pair[1], Connection(mine, None, 0.0): another}
        datagrams = [[bytes([number]) * 1_000 for number in range(n, n + 9)] for n in (0, 100)]
        streams = [framed(*some) for some in datagrams]
        got: list[list[bytes]] = [[], []]
        for at in range(0, len(streams[0]), 700):
            for n, (connection, end) in enumerate(ends.items()):
                end.sendall(streams[n][at : at + 700])
                got[n] += read(connection, buffer)
        assert got == datagrams


def test_what_was_cut_is_good_until_the_next_read(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, other = pair
    buffer = ReadBuffer()
    other.sendall(framed(b"one", b"two") + framed(b"three")[:5])
    buffer.read(connection)
    views = buffer.cut()
    assert buffer.cut() == []
    assert views == [b"one", b"two"]
    other.sendall(framed(b"three")[5:])
    assert read(connection, buffer) == [b"three"]


def test_what_one_left_behind_that_is_over_is_nobody_elses(
    pair: tuple[Connection, socket.socket],
) -> None:
    mine, another = socket.socketpair()
    mine.setblocking(False)
    buffer = ReadBuffer()
    with mine, another:
        over = Connection(mine, None, 0.0)
        another.sendall(framed(b"never whole")[:-1])
        assert read(over, buffer) == []
        buffer.forget(over)
        pair[1].sendall(framed(b"whole"))
        assert read(pair[0], buffer) == [b"whole"]
        assert over.rest == b""


def test_nothing_to_read_is_nothing(pair: tuple[Connection, socket.socket]) -> None:
    assert read(pair[0], ReadBuffer()) == []


def test_the_end_of_the_stream(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    other.close()
    with pytest.raises(Broken, match="closed_by_peer"):
        read(connection, ReadBuffer())


def test_a_length_past_the_bound(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    other.sendall(LENGTH.pack(LENGTH_MAX + 1))
    with pytest.raises(Broken, match="dropped_oversized"):
        read(connection, ReadBuffer())


def test_a_connection_carries_the_largest_datagram(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    sender = Connection(other, None, 0.0)
    other.setblocking(False)
    payload = bytes(LENGTH_MAX)
    sender.queue([LENGTH.pack(LENGTH_MAX), payload], LENGTH.size + LENGTH_MAX)
    got: list[bytes] = []
    buffer = ReadBuffer()
    while not got:
        sender.flush()
        got = read(connection, buffer)
    assert got == [payload]
    assert sender.queued == 0


def test_what_the_network_does_not_take_waits_in_order(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, other = pair
    other.settimeout(5.0)
    sent = [bytes([number % 256]) * 5_000 for number in range(2_000)]
    for data in sent:
        connection.queue([data], len(data))
    connection.flush()
    assert 0 < connection.queued < 10_000_000
    got = bytearray()
    while len(got) < 10_000_000:
        got += other.recv(1 << 20)
        connection.flush()
    assert got == b"".join(sent)


@pytest.mark.parametrize("first", [b"abc", bytes(5_000_000)])
def test_empty_buffers_keep_nobody_busy(
    pair: tuple[Connection, socket.socket], first: bytes
) -> None:
    connection, other = pair
    other.settimeout(5.0)
    connection.queue([b"", first, b"", b""], len(first))
    got = 0
    while got < len(first):
        connection.flush()
        got += len(other.recv(1 << 20))
    connection.flush()
    assert connection.queued == 0


def test_small_buffers_are_joined_to_chunks() -> None:
    datagrams = [datagram(bytes([number]), *[b"x" * 99] * 100) for number in range(7)]
    size = LENGTH.size + datagrams[0].nbytes
    made = list(chunks(datagrams, 3 * size))
    assert [chunk.datagrams for chunk in made] == [3, 3, 1]
    assert [chunk.nbytes for chunk in made] == [3 * size, 3 * size, size]
    assert [len(chunk.buffers) for chunk in made] == [1, 1, 1]
    whole = framed(*(b"".join(each.buffers) for each in datagrams))
    assert b"".join(buffer for chunk in made for buffer in chunk.buffers) == whole


def test_large_buffers_are_not_copied() -> None:
    payload = bytes(60_000)
    (chunk,) = chunks([datagram(b"head", payload), datagram(b"head", memoryview(payload))], 500_000)
    assert chunk.datagrams == 2
    assert chunk.nbytes == sum(map(len, chunk.buffers))
    assert any(buffer is payload for buffer in chunk.buffers)


def test_a_datagram_above_the_size_of_a_chunk() -> None:
    small, large = datagram(b"s"), datagram(bytes(9_000))
    made = list(chunks([small, large, large, small, small], 5_000))
    assert [chunk.datagrams for chunk in made] == [1, 1, 1, 2]
    assert list(chunks([], 5_000)) == []


def test_a_queue_that_is_dropped(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.queue([b"abc"], 3)
    assert connection.drop_queue() == 3
    assert connection.queued == 0


def test_a_hello_names_version_group_and_sender() -> None:
    hello = encode_hello(5, Address(7))
    assert len(hello) == HELLO_SIZE
    assert decode_hello(memoryview(hello), 5) == Address(7)
    for bad, reason in (
        (b"x" + hello[1:], "no_hello"),
        (hello[:4] + b"\x09" + hello[5:], "wrong_version"),
        (encode_hello(6, Address(7)), "wrong_group"),
    ):
        with pytest.raises(Broken, match=reason):
            decode_hello(memoryview(bad), 5)
