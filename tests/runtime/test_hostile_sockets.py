"""Frames of all kinds from a process outside the view, on real sockets: IPv4 and IPv6, UDP and TCP.

The simulator has the same with more seeds; here they come by sockets, and name endpoints that a
transport has to read, look up and call.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest

from ringcast import sync
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Discover, Join, Present
from ringcast.runtime.net.connection import LENGTH, encode_hello
from ringcast.runtime.net.endpoints import join_endpoint, split_endpoint
from ringcast.sim.swarm import hostile
from ringcast.transports import Tcp, Udp
from tests.runtime.support import group_name, numbered, seeded, take_bytes
from tests.runtime.waiting import wait_until

DATAGRAMS = 300
TRANSPORTS: dict[str, Udp | Tcp] = {
    "UDP over IPv4": Udp(multicast=""),
    "UDP over IPv6": Udp(multicast="", bind="::1"),
    "TCP over IPv4": Tcp(),
    "TCP over IPv6": Tcp(bind="::1"),
}
ENDPOINTS = (
    *("h]:7", "[h:7", "[]:7", "[::1]:9", "127.0.0.1:9", "localhost:9", "::1:9", "a:\u0667", "a:-1"),
    *(
        "a:" + "9" * 500,
        "\u00e9.invalid:7",
        "x" * 400 + ":7",
        ".:7",
        "0.0.0.0:9",
        "[::%lo]:9",
        " :7",
    ),
)

pytestmark = pytest.mark.net


@contextmanager
def pair(transport: Udp | Tcp) -> Iterator[tuple[str, sync.Group, sync.Group]]:
    name = group_name()
    with (
        sync.join(name, seeded(transport, None), name="a") as a,
        sync.join(name, seeded(transport, a.endpoint), name="b") as b,
    ):
        wait_until(lambda: len(a.view) == len(b.view) == 2)
        yield name, a, b


def send(datagrams: list[bytes], group: int, me: Address, to: sync.Group, is_stream: bool) -> None:
    place = split_endpoint(to.endpoint)
    if not is_stream:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as stranger:
            for data in datagrams:
                stranger.sendto(data, place)
        return
    with socket.create_connection(place) as stranger, suppress(ConnectionError):
        stranger.sendall(encode_hello(group, me))
        for data in datagrams:
            stranger.sendall(LENGTH.pack(len(data)) + data)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_frames_of_a_stranger_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    rng = Random(kind)
    with pair(TRANSPORTS[kind]) as (name, a, b):
        texts = (*ENDPOINTS, a.endpoint, b.endpoint, "n" * 500)
        monkeypatch.setattr(hostile, "TEXTS", texts)
        view = a.view
        known = hostile.stranger(rng, [a.me, b.me])
        drawn = [hostile.draw_datagram(rng, known, name) for _ in range(DATAGRAMS)]
        for group in (a, b):
            before = group.stats()["counters"].get("received_strangers", 0)
            send(drawn, group_id(name), known.me, group, kind.startswith("TCP"))
            wait_until(
                lambda g=group, n=before: g.stats()["counters"].get("received_strangers", 0) > n  # type: ignore[misc]
            )
        a.send_many(numbered("after", 50))
        assert take_bytes(b, 50) == numbered("after", 50)
        assert a.view == b.view == view
    assert errors == [], "a thread of a member has ended"


@pytest.mark.parametrize("kind", ["UDP over IPv4", "UDP over IPv6"])
def test_frames_in_the_name_of_a_member_redirect_nothing_that_is_sent_to_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = socket.AF_INET6 if "6" in kind else socket.AF_INET
    with pair(TRANSPORTS[kind]) as (name, a, b), socket.socket(family, socket.SOCK_DGRAM) as third:
        third.bind(("::1" if "6" in kind else "127.0.0.1", 0))
        third.setblocking(False)
        claimed = Peer(b.me, "b", join_endpoint(*third.getsockname()[:2]))
        asked = [
            Discover(claimed, NO_VIEW, 1),
            Join(claimed, "", 7),
            Present(claimed, NO_VIEW, claimed, 1, 0),
        ]
        group = group_id(name)
        lies = [b"".join(encode(group, b.me, [frame])) for frame in asked]
        own = Peer(Address(0xBAD), "stranger", claimed.endpoint)
        learned = list[Peer]()
        learn = a._member.transport.learn

        def note(peer: Peer, is_claim: bool = False) -> None:
            learned.append(peer)
            learn(peer, is_claim)

        monkeypatch.setattr(a._member.transport, "learn", note)
        last = b"".join(encode(group, own.address, [Discover(own, NO_VIEW, 1)]))
        send([*lies, last], group, own.address, a, is_stream=False)
        wait_until(lambda: own in learned)  # Those before it are known by then.
        assert {peer.endpoint for peer in learned if peer.address == b.me} == {b.endpoint}
        a.send_many(numbered("private", 50), to=b.me)
        assert take_bytes(b, 50) == numbered("private", 50)
        assert len(a.view) == 2
        with pytest.raises(BlockingIOError):
            third.recv(100)
