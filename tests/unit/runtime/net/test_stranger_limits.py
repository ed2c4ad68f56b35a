"""What strangers may use of a member over TCP, and that they lose it first."""

import resource
import select
import socket
from contextlib import ExitStack

import pytest

from ringcast.core.model.address import Address
from ringcast.core.wire.codec import encode
from ringcast.core.wire.frames import Alive
from ringcast.runtime.net.connection import LENGTH, Connection, ReadBuffer
from ringcast.runtime.net.stranger_limits import (
    ACCEPTS,
    ACCEPTS_BURST,
    BURST,
    CALLS,
    IDLE_SECONDS,
    RATE,
    STRANGER_WAITING_MAX,
    WAITING_FREE,
    WAITING_MAX,
    StrangerLimits,
    connections_allowed,
)
from ringcast.transports import Tcp
from tests.unit.runtime.net.test_tcp import (
    GROUP,
    ME,
    OTHER,
    SOON,
    THIRD,
    datagram,
    received,
    stranger,
    transports,
)


def connection(address: Address | None, heard_at: float = 0.0) -> Connection:
    with socket.socket() as sock:
        made = Connection(sock, None, 0.0)
    made.address, made.heard_at = address, heard_at
    return made


def test_without_a_view_nobody_is_a_stranger() -> None:
    limits = StrangerLimits()
    assert not limits.is_stranger(connection(OTHER))
    limits.view((ME, OTHER), 0.0)
    assert not limits.is_stranger(connection(OTHER))
    assert limits.is_stranger(connection(THIRD))


def test_strangers_share_one_rate() -> None:
    limits = StrangerLimits()
    limits.view((ME,), 0.0)
    one, other = connection(OTHER), connection(THIRD)
    assert not limits.spend(one, BURST - 1, 0.0)
    assert limits.spend(other, RATE + 1, 0.0)
    assert limits.resume_at == pytest.approx(1.0)
    assert limits.resumed() == [other]
    assert not limits.spend(other, RATE, 3.0)


def test_silent_strangers_are_ended_and_members_are_not() -> None:
    limits = StrangerLimits()
    limits.view((ME, OTHER), 0.0)
    member, silent, lively = connection(OTHER), connection(THIRD), connection(THIRD, 50.0)
    assert limits.sweep([member, silent, lively], IDLE_SECONDS + 1) == [silent]
    assert limits.most_silent([member, lively, silent]) is silent
    assert limits.most_silent([member]) is None


def test_endpoints_that_strangers_name_are_called_seldom() -> None:
    limits = StrangerLimits()
    assert limits.may_call(THIRD, 0.0), "without a view anybody may be the group"
    limits.view((ME, OTHER), 0.0)
    called = sum(limits.may_call(Address(1_000 + n), 5.0) for n in range(500))
    assert called == CALLS
    assert limits.may_call(OTHER, 5.0), "a member of the view"
    assert limits.may_call("seed:1", 5.0), "an endpoint of the configuration"
    assert limits.may_call(THIRD, 6.0), "a second later"


def test_what_waits_for_strangers_is_bounded_for_each_and_for_all() -> None:
    limits = StrangerLimits()
    member, one, other = connection(OTHER), connection(THIRD), connection(Address(9))
    all_of_them = [member, one, other]
    assert limits.may_wait(one, WAITING_MAX, all_of_them), "without a view anybody may be a member"
    limits.view((ME, OTHER), 0.0)
    assert limits.may_wait(member, WAITING_MAX, all_of_them)
    assert limits.may_wait(one, STRANGER_WAITING_MAX, all_of_them)
    assert not limits.may_wait(one, STRANGER_WAITING_MAX + 1, all_of_them)
    other.queue([], WAITING_MAX - WAITING_FREE)
    assert limits.may_wait(one, WAITING_FREE, all_of_them)
    assert not limits.may_wait(one, WAITING_FREE + 1, all_of_them)


def test_answers_that_a_stranger_does_not_read_take_little_memory() -> None:
    answer = bytes(10_000)
    with transports(Tcp(), ME) as (me,), stranger(me, THIRD, buffer=4_096):
        for _ in range(1_000):
            me.send([datagram(THIRD, answer)], (ME, OTHER))
        (waits,) = me._table
        assert waits.queued <= STRANGER_WAITING_MAX
        assert me.stats()["dropped_queue_full"] > 500


def test_datagrams_that_strangers_begin_and_never_finish_take_little_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringcast.runtime.net.stranger_limits.WAITING_MAX", 100_000)
    with transports(Tcp(), ME) as (me,), ExitStack() as opened:
        me.send([], (ME,))
        begun = [opened.enter_context(stranger(me, Address(100 + n))) for n in range(3)]
        for sock in begun:
            sock.sendall(LENGTH.pack(500_000) + bytes(40_000))
        while not me.stats().get("dropped_unfinished"):
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert not list(me.receive(32))
        assert sum(len(each.rest) for each in me._table) <= 100_000


def test_callers_are_accepted_in_turn() -> None:
    limits = StrangerLimits()
    assert all(limits.may_accept(0.0) for _ in range(2 * ACCEPTS_BURST)), "there is no view"
    limits.view((ME,), 0.0)
    assert sum(limits.may_accept(0.0) for _ in range(2 * ACCEPTS_BURST)) == ACCEPTS_BURST
    assert sum(limits.may_accept(0.5) for _ in range(2 * ACCEPTS_BURST)) == ACCEPTS // 2


def test_a_flood_of_callers_waits_in_the_kernel_and_is_accepted_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringcast.runtime.net.stranger_limits.ACCEPTS_BURST", 2)
    monkeypatch.setattr("ringcast.runtime.net.stranger_limits.ACCEPTS", 20)
    with transports(Tcp(), ME) as (me,), ExitStack() as callers:
        me.send([], (ME,))
        for number in range(6):  # Each is heard before the next one calls.
            callers.enter_context(stranger(me, Address(100 + number)))
        assert me.stats()["throttled_accepts"] > 0


def test_half_of_the_descriptors_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 100))
    assert connections_allowed(1_024) == 50
    assert connections_allowed(20) == 20


def test_strangers_that_fill_all_connections_keep_no_member_out() -> None:
    with transports(Tcp(connections_max=4), ME, OTHER) as (me, other), ExitStack() as strangers:
        me.send([], (ME, OTHER))
        for number in range(6):
            strangers.enter_context(stranger(me, Address(100 + number)))
        other.send([datagram(ME, b"from a member")], ())
        assert received(me, 1, other) == [b"from a member"]
        assert me.stats()["ended_for_another"] >= 1


def test_a_call_without_a_descriptor_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    with transports(Tcp(), ME, OTHER) as (me, _), monkeypatch.context() as patch:
        patch.setattr("ringcast.runtime.net.connection.socket.socket", refuse)
        me.send([datagram(OTHER, b"x")], (ME, OTHER))
        assert me.stats()["dropped_unreachable"] == 1


def test_a_stranger_that_floods_is_not_read_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.stranger_limits.RATE", 1)
    monkeypatch.setattr("ringcast.runtime.net.stranger_limits.BURST", 1_000)
    with transports(Tcp(), ME) as (me,), stranger(me, THIRD) as sock:
        me.send([], (ME,))
        alive = b"".join(encode(GROUP, THIRD, [Alive()]))
        sock.sendall((LENGTH.pack(len(alive)) + alive) * 50)
        while not me.stats().get("throttled_reads"):
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert list(me.receive(32))
        sock.sendall((LENGTH.pack(len(alive)) + alive) * 50)
        assert not list(me.receive(32))
        assert me.deadline < float("inf"), "it is read again later"


def test_a_datagram_in_the_name_of_another_ends_the_connection() -> None:
    forged = b"".join(encode(GROUP, OTHER, [Alive()]))
    with transports(Tcp(), ME) as (me,), stranger(me, THIRD) as sock:
        sock.sendall(LENGTH.pack(len(forged)) + forged)
        while not me.stats().get("dropped_wrong_source"):
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert not list(me.receive(32))
        assert sock.recv(1) == b""


def test_a_stranger_that_sends_no_datagrams_of_a_group_is_ended() -> None:
    with transports(Tcp(), ME) as (me,), stranger(me, THIRD) as sock:
        me.send([], (ME,))
        sock.sendall(bytes(40_000))  # Ten thousand empty datagrams.
        while not me.stats().get("dropped_malformed"):
            assert select.select(me.filenos(), (), (), SOON)[0]
            assert not list(me.receive(32))
        assert not len(me._table)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="needs epoll")
def test_two_senders_of_single_bytes_do_not_have_their_datagrams_copied_for_each() -> None:
    """What a connection has sent of a large datagram is put aside when another one is read."""
    buffer = ReadBuffer()
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as opened:
        ends = []
        for _ in range(2):
            sender = opened.enter_context(socket.create_connection(server.getsockname()))
            taken = opened.enter_context(server.accept()[0])
            taken.setblocking(False)
            ends.append((sender, Connection(taken, None, 0.0)))
        for sender, reader in ends:
            sender.sendall(LENGTH.pack(1_000_000) + bytes(100_000))
            buffer.read(reader)
            while len(buffer) < 100_004:
                assert select.select([reader.sock], (), (), SOON)[0]
                buffer.read(reader)
        (sender, reader), _ = ends
        sender.sendall(b"x")
        poll = select.epoll()
        opened.callback(poll.close)
        poll.register(reader.fd, select.EPOLLIN)
        assert poll.poll(0.2) == [], "a single byte wakes nobody"
        sender.sendall(bytes(40_000))
        assert poll.poll(SOON)
        sender.close()
