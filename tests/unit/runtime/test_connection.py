"""One connection: datagrams are cut from the stream wherever it breaks, and lengths are bounded."""

import socket
from collections.abc import Iterator

import pytest

from ringcast.core.address import Address
from ringcast.runtime.connection import (
    HELLO_SIZE,
    LENGTH,
    LENGTH_MAX,
    Broken,
    Connection,
    ReadBuffer,
    decode_hello,
    encode_hello,
)


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection and the other end of it."""
    mine, other = socket.socketpair()
    mine.setblocking(False)
    with mine, other:
        yield Connection(mine, None, 0.0), other


def read(connection: Connection) -> list[bytes]:
    view, filled = connection.read(ReadBuffer())
    return [bytes(datagram) for datagram in connection.cut(view, filled, 0)]


def test_datagrams_come_whole_wherever_the_stream_breaks(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, other = pair
    datagrams = [b"", b"a", b"bc" * 100, bytes(300)]
    stream = b"".join(LENGTH.pack(len(d)) + d for d in datagrams)
    got: list[bytes] = []
    for at in range(0, len(stream), 7):
        other.sendall(stream[at : at + 7])
        got += read(connection)
    assert got == datagrams


def test_nothing_to_read_is_nothing(pair: tuple[Connection, socket.socket]) -> None:
    assert read(pair[0]) == []


def test_the_end_of_the_stream(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    other.close()
    with pytest.raises(Broken, match="closed_by_peer"):
        read(connection)


def test_a_length_past_the_bound(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    other.sendall(LENGTH.pack(LENGTH_MAX + 1))
    with pytest.raises(Broken, match="dropped_oversized"):
        read(connection)


def test_the_largest_datagram(pair: tuple[Connection, socket.socket]) -> None:
    connection, other = pair
    sender = Connection(other, None, 0.0)
    other.setblocking(False)
    payload = bytes(LENGTH_MAX)
    sender.queue([LENGTH.pack(LENGTH_MAX), payload], LENGTH.size + LENGTH_MAX)
    got: list[bytes] = []
    while not got:
        sender.flush()
        got = read(connection)
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


def test_a_queue_that_is_dropped(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.queue([b"abc"], 3)
    assert connection.drop_queue() == 3
    assert connection.queued == 0


def test_the_hello() -> None:
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
