"""A stranger on real sockets that has heard everything and has no key gets nothing, and nowhere."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from ringcast import sync
from ringcast.closed.handshake import Handshake
from ringcast.closed.seal import GroupSeal
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.seal import SEALED_AT
from ringcast.runtime.net.connection import LENGTH
from ringcast.runtime.net.endpoints import split_endpoint
from tests.runtime.support import SOON, members, numbered, take_bytes
from tests.runtime.waiting import wait_until

KEY = bytes(range(50, 82))
HELLO_SIZE = 72
"""Bytes of the first thing that either side of a TCP connection says."""

pytestmark = pytest.mark.net


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every datagram that a member of this process seals."""
    recorded: list[bytes] = []
    seal = GroupSeal.seal

    def listen(self: GroupSeal, datagrams: Sequence[Datagram]) -> list[Datagram]:
        sealed = seal(self, datagrams)
        recorded.extend(b"".join(datagram.buffers) for datagram in sealed)
        return sealed

    monkeypatch.setattr(GroupSeal, "seal", listen)
    return recorded


@pytest.fixture
def hellos(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The hellos of callers, as they arrive."""
    recorded: list[bytes] = []
    feed = Handshake.feed

    def listen(self: Handshake, data: bytes) -> bytes:
        if not self.first:
            recorded.append(data)
        return feed(self, data)

    monkeypatch.setattr(Handshake, "feed", listen)
    return recorded


def forgeries(heard: Sequence[bytes]) -> list[bytes]:
    """Recorded datagrams as they were, flipped, cut, and put together from two."""
    rng, made = Random(1), list[bytes]()
    for data in heard[:300]:
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        other = rng.choice(heard)
        cut = data[: rng.randrange(len(data))]
        made += [data, bytes(flipped), cut, other[:SEALED_AT] + data[SEALED_AT:]]
    return made


def dropped(group: sync.Group) -> int:
    counters = group.stats()["counters"]
    return counters.get("dropped_replayed", 0) + counters.get("dropped_wrong_key", 0)


def talk(groups: Sequence[sync.Group], word: str) -> None:
    """Each message arrives once, and nothing besides."""
    groups[0].send_many(numbered(word, 50))
    for group in groups[1:]:
        assert take_bytes(group, 50) == numbered(word, 50)


@pytest.mark.parametrize("kind", ["unicast", "multicast"])
def test_recorded_and_forged_datagrams_get_no_answer_by_udp(kind: str, heard: list[bytes]) -> None:
    with (
        members(3, kind, key=KEY) as groups,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        stranger.bind(("127.0.0.1", 0))
        views = [group.view for group in groups]
        for word in ("at once", "later"):
            talk(groups, word)
            for group in groups:
                before = dropped(group)
                for data in forgeries(list(heard)):
                    stranger.sendto(data, split_endpoint(group.endpoint))
                wait_until(lambda g=group, n=before: dropped(g) > n)  # type: ignore[misc]
        talk(groups, "after")
        assert [group.view for group in groups] == views
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(65_536)


def test_recorded_and_forged_hellos_get_no_connection_over_tcp(
    heard: list[bytes], hellos: list[bytes]
) -> None:
    with members(3, "tcp", key=KEY) as groups:
        talk(groups, "before")
        views = [group.view for group in groups]
        hello = next(data for data in hellos if len(data) == HELLO_SIZE)
        framed = b"".join(LENGTH.pack(len(data)) + data for data in heard[:50])
        flipped = bytes((*hello[:-1], hello[-1] ^ 1))
        answers = [
            [answer_to(said + framed, group) for said in (hello, flipped, hello[:-9], b"")]
            for group in groups
        ]
        # The member that took the call says nothing; another one, which never heard the hello,
        # says its own, which tells nothing, and ends the connection.
        assert [len(first) for first, *_ in answers].count(0) >= 1
        assert all(len(first) in (0, HELLO_SIZE) for first, *_ in answers)
        assert all(not any(others) for _, *others in answers)
        assert all(answer_to(hello + framed, group) == b"" for group in groups)
        talk(groups, "after")
        assert [group.view for group in groups] == views


def answer_to(said: bytes, group: sync.Group) -> bytes:
    """All that a stranger hears who says this and nothing more."""
    answer = b""
    with socket.create_connection(split_endpoint(group.endpoint)) as stranger:
        stranger.settimeout(SOON)
        with suppress(ConnectionResetError, BrokenPipeError):
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            while data := stranger.recv(65_536):
                answer += data
    return answer
