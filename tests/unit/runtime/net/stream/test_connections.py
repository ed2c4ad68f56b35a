"""Which connection reaches whom, above all when both sides have called at once."""

import socket
from collections.abc import Iterator

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.runtime.net.connection import Connection
from ringcast.runtime.net.stream.connections import RETRY_MIN, ConnectionTable, RetrySchedule

LOW, HIGH = Address(1), Address(2)


@pytest.fixture
def made() -> Iterator[list[socket.socket]]:
    """The sockets of a test, closed behind it."""
    sockets: list[socket.socket] = []
    yield sockets
    for sock in sockets:
        sock.close()


def call(made: list[socket.socket], endpoint: str | None) -> Connection:
    sock = socket.socket()
    made.append(sock)
    return Connection(sock, endpoint, 5.0)


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize(("me", "other"), [(LOW, HIGH), (HIGH, LOW)])
def test_of_two_crossing_calls_that_of_the_lower_address_stays(
    made: list[socket.socket], me: Address, other: Address, ours_first: bool
) -> None:
    table = ConnectionTable(me)
    table.learn(Peer(other, "other", "there:1"))
    ours, theirs = call(made, "there:1"), call(made, None)
    table.add(ours)
    table.add(theirs)
    retired = [
        table.introduce(c, other) for c in ((ours, theirs) if ours_first else (theirs, ours))
    ]
    stays = ours if me < other else theirs
    assert table.find(other) is stays
    assert table.find("there:1") is stays
    # Each side ends its own call, so that what is queued on the other's is not lost.
    assert [c for c in retired if c is not None] == ([] if stays is ours else [ours])
    assert ours.retiring == (stays is not ours)


def test_a_hello_in_the_name_of_a_connected_member_takes_nothing_over(
    made: list[socket.socket],
) -> None:
    table = ConnectionTable(LOW)
    old, new = call(made, None), call(made, None)
    for connection in (old, new):
        table.add(connection)
        assert table.introduce(connection, HIGH) is None
    assert table.find(HIGH) is old
    assert old.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), "it is probed"
    table.remove(old)
    assert table.find(HIGH) is new, "the first one is over"
    table.remove(new)
    assert table.find(HIGH) is None
    assert len(table) == 0


def test_a_claim_to_be_at_an_endpoint_takes_nothing_that_is_sent_there(
    made: list[socket.socket],
) -> None:
    table, stranger = ConnectionTable(LOW), call(made, None)
    table.add(stranger)
    table.introduce(stranger, HIGH)
    table.learn(Peer(HIGH, "", "seed:1"), is_claim=True)
    assert table.find("seed:1") is None
    assert table.find(HIGH) is stranger
    table.learn(Peer(HIGH, "", "seed:1"))  # A view says so.
    assert table.find("seed:1") is stranger


def test_a_late_hello_does_not_retire_our_own_call(made: list[socket.socket]) -> None:
    table = ConnectionTable(HIGH)
    ours, forged = call(made, "there:1"), call(made, None)
    for connection, now in ((ours, 10.0), (forged, 60.0)):
        table.add(connection)
        assert table.introduce(connection, LOW, now) is None
    assert table.find(LOW) is ours
    assert not ours.retiring


def test_a_call_under_way_is_used_for_the_member_that_is_expected_there(
    made: list[socket.socket],
) -> None:
    table = ConnectionTable(LOW)
    table.learn(Peer(HIGH, "high", "there:1"))
    connection = call(made, "there:1")
    table.add(connection)
    assert table.find(HIGH) is connection
    table.introduce(connection, Address(3))
    assert table.find(HIGH) is None, "another member has answered"
    assert table.is_taken("there:1")


def test_an_accepted_connection_serves_its_endpoint(made: list[socket.socket]) -> None:
    table = ConnectionTable(LOW)
    connection = call(made, None)
    table.add(connection)
    table.introduce(connection, HIGH)
    table.learn(Peer(HIGH, "high", "there:1"))
    assert table.find("there:1") is connection


def test_who_does_not_say_who_it_is_is_given_up(made: list[socket.socket]) -> None:
    table = ConnectionTable(LOW)
    silent, known = call(made, None), call(made, None)
    for connection in (silent, known):
        table.add(connection)
    table.introduce(known, HIGH)
    assert table.deadline == 5.0
    assert table.silent(4.9) == []
    assert table.silent(5.0) == [silent]
    table.remove(silent)
    assert table.deadline == float("inf")


def test_calls_are_made_at_growing_pauses() -> None:
    calls = RetrySchedule(retry_max=0.15)
    assert calls.may("x", 0.0)
    pauses = []
    now = 0.0
    for _ in range(4):
        calls.failed("x", now)
        pause = next(p / 1000 for p in range(1, 1000) if calls.may("x", now + p / 1000))
        pauses.append(pause)
        now += pause
    assert pauses == [RETRY_MIN, 2 * RETRY_MIN, 0.15, 0.15]
    assert calls.failures("x") == 4
    calls.succeeded("x")
    assert calls.may("x", 0.0)


def test_endpoints_whose_calls_failed_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.stream.connections.FAILED_MAX", 3)
    calls = RetrySchedule(retry_max=1.0)
    for number in range(10):
        calls.failed(f"there:{number}", now=0.0)
    assert [calls.failures(f"there:{number}") for number in range(6, 10)] == [0, 1, 1, 1]
