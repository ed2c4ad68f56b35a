"""No pair of key and nonce is ever used twice, whatever happens to members and keys.

An AEAD cipher is broken by one pair that is used for two datagrams. A pair cannot repeat: a key is
derived from the group's key, the algorithm and the address of one life, which is 63 random bits;
the nonce is a counter that only grows in a life, also when the group's keys change and change back;
a fork drops its keys. The tests watch the ciphers themselves, so that they notice whatever way a
pair would take. The long one seals a million datagrams; the simulated one has repeats, merges and
restarts; the last one forks a process.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ringcast import presets, sync
from ringcast.closed import ciphers
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import UnicastAck
from ringcast.core.wire.outbox import Datagram
from ringcast.sim import World
from ringcast.transports import Memory

OLD, NEW = Key(bytes(32)), Key(bytes(range(32)))
RUN = 100


class Pairs:
    """The pairs of key and nonce that were used."""

    def __init__(self) -> None:
        self.used: set[tuple[bytes, bytes]] = set()
        self.count = 0

    def use(self, key: bytes, nonce: bytes) -> None:
        self.used.add((key, nonce))
        self.count += 1


pairs = Pairs()


class WatchedCipher:
    """AES-GCM that tells by which pairs it was used."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._cipher = AESGCM(key)

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes) -> bytes:
        pairs.use(self._key, nonce)
        return self._cipher.encrypt(nonce, data, associated_data)

    def decrypt_into(self, *arguments: object) -> int:
        return self._cipher.decrypt_into(*arguments)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ciphers, "AESGCM", WatchedCipher)
    pairs.used.clear()
    pairs.count = 0
    yield
    assert len(pairs.used) == pairs.count > RUN


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_lives_and_keys_come_and_go(count: int) -> None:
    buffers = encode(group_id("g"), Address(1), [UnicastAck(1, 2)])
    run = [Datagram(None, buffers, sum(map(len, buffers)))] * RUN
    rng, members = Random(count), list[GroupSeal]()
    while pairs.count < count:
        if not members or rng.random() < 0.01:
            members.append(GroupSeal((OLD,), "g", Address(secrets.randbits(63) + 1), has_aes=True))
            del members[:-5]
        member = rng.choice(members)
        if rng.random() < 0.1:
            member.use(rng.choice([(OLD,), (OLD, NEW), (NEW, OLD), (NEW,)]))
        member.seal(run)


def test_repeats_merges_and_restarts() -> None:
    world = World(
        3, presets.lan(), key=bytes(32), loss=0.05, duplicate=0.05, reorder=0.1, addresses="random"
    )
    a, b, c = world.join("a", "b", "c")
    for keys in ([bytes(32), bytes(range(32))], [bytes(range(32)), bytes(32)], [bytes(32)]):
        world.partition([a], [b, c])
        world.run(10.0)
        world.use_keys(*keys)
        for member in (a, b, c):
            member.send([bytes(2_000)] * 300)
            member.use_keys(*keys)
        world.heal()
        world.run_until(lambda: world.united, 120.0)
        c.restart()
        world.run_until(lambda: world.united, 120.0)
    world.settle()


def test_a_forked_process_seals_nothing() -> None:
    spec = presets.loopback().replace(Memory())
    with sync.join("forks", spec, key=bytes(32)) as group:
        group.send_many([bytes(100)] * RUN)
        seal = group._member.security.group_seal
        assert seal is not None
        buffers = encode(group_id("forks"), group.me, [UnicastAck(1, 2)])
        datagram = Datagram(None, buffers, sum(map(len, buffers)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Of forks beside threads.
            child = os.fork()
        if child == 0:
            status = 1
            with suppress(BaseException):
                status = 0 if seal.seal([datagram]) == [] and not seal.tags else 2
            os._exit(status)
        _, ended = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended) == 0
        assert len(seal.seal([datagram] * RUN)) == RUN
