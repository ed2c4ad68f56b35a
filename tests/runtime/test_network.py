"""What can be wrong with a network: ports, seeds, strangers and garbage; each has its sentence."""

import socket
import threading
from contextlib import closing, suppress

import pytest

import ringcast
from ringcast import presets, sync
from ringcast.control.discovery import Discovery
from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.codec import group_id
from ringcast.core.wire.outbox import Datagram
from ringcast.runtime.net.connection import encode_hello
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.transports import Tcp, Udp
from tests.runtime.support import (
    SOON,
    SPECS,
    come_back,
    group_name,
    members,
    numbered,
    seeded,
    take_bytes,
)


@pytest.mark.parametrize(
    ("kind", "transport"), [(socket.SOCK_STREAM, Tcp), (socket.SOCK_DGRAM, Udp)]
)
def test_a_port_that_is_in_use(kind: socket.SocketKind, transport: type[Tcp] | type[Udp]) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ringcast.ConfigError, match=f"127.0.0.1:{port} is in use"):
            sync.join(group_name(), presets.loopback().replace(transport(port=port)))


def test_an_address_that_is_not_here() -> None:
    for transport in (Tcp(bind="203.0.113.7"), Udp(bind="203.0.113.7")):
        with pytest.raises(ringcast.ConfigError, match="not an address of this machine"):
            sync.join(group_name(), presets.loopback().replace(transport))
    with pytest.raises(ringcast.ConfigError, match="not an address, interface or host"):
        sync.join(group_name(), presets.loopback().replace(Tcp(bind="nowhere0")))


@pytest.mark.parametrize("transport", [Tcp(), Udp(multicast="")])
def test_seeds_that_nobody_answers_at(transport: Tcp | Udp) -> None:
    with pytest.raises(ringcast.Timeout, match=r"tried seeds 127\.0\.0\.1:9") as failure:
        sync.join(group_name(), seeded(transport, "127.0.0.1:9"), timeout=0.5)
    assert "within 0.5 seconds" in str(failure.value)
    spec = seeded(transport, "127.0.0.1:9").replace(
        Discovery(multicast=False, seeds=("127.0.0.1:9",), timeout=0.1, when_alone="fail")
    )
    with pytest.raises(ringcast.JoinFailed, match=r"tried seeds 127\.0\.0\.1:9"):
        sync.join(group_name(), spec, timeout=SOON)


def test_a_seed_by_name() -> None:
    with members(1, "tcp") as (a,):
        port = a.endpoint.rpartition(":")[2]
        spec = seeded(Tcp(), f"localhost:{port}")
        with sync.join(a._member.group, spec, timeout=SOON) as b:
            assert len(b.view) == 2


@pytest.mark.parametrize("kind", ["unicast", "multicast"])
def test_garbage_in_datagrams_changes_nothing(kind: str) -> None:
    with members(2, kind) as (a, b), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        target = split_endpoint(a.endpoint)
        for size in (0, 1, 27, 28, 29, 500, 60_000):
            stranger.sendto(bytes(size), target)
            stranger.sendto(b"RC\x01" + bytes(size), target)
            stranger.sendto(b"RC\xff" + b"\xff" * size, target)
        b.send_many(numbered("x", 100))
        assert take_bytes(a, 100) == numbered("x", 100)
        transport = a.stats()["transport"]  # The kernel has dropped them.
        assert isinstance(transport, dict)
        assert transport["dropped_buffer_full"] >= 21
        assert len(a.view) == 2


@pytest.mark.parametrize(
    ("first", "counter"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "dropped_no_hello"),
        (b"RCtc\x01\0\0\0" + bytes(16), "dropped_wrong_group"),
        (b"RCtc\xff\0\0\0" + bytes(16), "dropped_wrong_version"),
        (b"RC", "ended_silent"),
    ],
)
def test_strangers_at_a_tcp_port_are_shown_out(first: bytes, counter: str) -> None:
    with members(1, "tcp", connect_timeout=0.3) as (group,):
        with closing(socket.create_connection(split_endpoint(group.endpoint))) as stranger:
            stranger.settimeout(SOON)
            stranger.sendall(first)
            with suppress(ConnectionResetError):
                while stranger.recv(4096):
                    pass
        transport = group.stats()["transport"]
        assert isinstance(transport, dict)
        assert transport[counter] == 1
        group.send(b"on")
        assert take_bytes(group, 1) == [b"on"]


def test_a_length_that_promises_gigabytes_ends_the_connection() -> None:
    with members(1, "tcp") as (group,):
        with closing(socket.create_connection(split_endpoint(group.endpoint))) as stranger:
            stranger.settimeout(SOON)
            stranger.sendall(encode_hello(group_id(group._member.group), Address(7)))
            stranger.sendall(b"\xff\xff\xff\xff")
            while stranger.recv(4096):
                pass
        transport = group.stats()["transport"]
        assert isinstance(transport, dict)
        assert transport["dropped_oversized"] == 1


def test_a_member_that_reads_nothing_blocks_nobody_else() -> None:
    """A connection whose other end reads nothing fills its queue; the others go on."""
    with (
        members(2, "tcp", queue_bytes=65_536) as (a, b),
        socket.create_server(("127.0.0.1", 0)) as deaf,
    ):
        host, port = deaf.getsockname()
        member = a._member
        with member._lock:
            member.transport.learn(Peer(Address(7), "deaf", f"{host}:{port}"))
            for _ in range(1_000):
                member.transport.send([Datagram(Address(7), [bytes(60_000)], 60_000)], ())
        a.send_many(numbered("x", 1_000))
        assert take_bytes(b, 1_000) == numbered("x", 1_000)
        transport = a.stats()["transport"]
        assert isinstance(transport, dict)
        assert transport["dropped_queue_full"] > 0


def test_both_sides_call_at_once() -> None:
    """Many pairs, so that calls cross: each pair ends with one connection, and nothing is lost."""
    with members(6, "tcp") as groups:
        threads = [
            threading.Thread(target=group.send_many, args=(numbered(group.name, 200),))
            for group in groups
        ]
        for thread in threads:
            thread.start()
        for group in groups:
            expected = sorted(p for g in groups for p in numbered(g.name, 200))
            assert sorted(take_bytes(group, 1_200)) == expected
        for thread in threads:
            thread.join(SOON)


@pytest.mark.parametrize("transport", [Tcp(bind="::1"), Udp(bind="::1", multicast="")])
def test_a_group_forms_over_ipv6(transport: Tcp | Udp) -> None:
    with sync.join(group_name(), seeded(transport, None), timeout=SOON) as a:
        assert a.endpoint.startswith("[::1]:")
        with sync.join(a._member.group, seeded(transport, a.endpoint), timeout=SOON) as b:
            a.send(b"six")
            assert take_bytes(b, 1) == take_bytes(a, 1) == [b"six"]
            come_back(a)
            come_back(b)


def test_all_interfaces_with_an_address_to_advertise() -> None:
    spec = seeded(Tcp(bind="0.0.0.0", advertise="127.0.0.1"), None)
    with sync.join(group_name(), spec, timeout=SOON) as a:
        assert a.endpoint.startswith("127.0.0.1:")
        with sync.join(a._member.group, SPECS["tcp"](a.endpoint), timeout=SOON) as b:
            assert len(b.view) == 2
