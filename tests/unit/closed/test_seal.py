"""What is sealed opens once, at holders of the key, and only as it was."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable

import pytest

from ringcast.closed import seal as module
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal, group_tag
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import decode, encode, group_id
from ringcast.core.wire.frames import Frame, UnicastAck
from ringcast.core.wire.layout import EVERYBODY
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.seal import COUNTER_AT, KEY_ID_AT, OVERHEAD, SEALED_AT
from ringcast.errors import (
    Closed,
    ConfigError,
    Malformed,
    NotForMe,
    RemoteError,
    Replayed,
    Unsealed,
    WrongKey,
    WrongVersion,
)

OLD, NEW = Key(bytes(32)), Key(bytes(range(32)))
A, B = Address(71), Address(72)
FRAME: Frame = UnicastAck(1, 2)


def seal_of(me: Address = A, *keys: Key, group: str = "g", aes: bool = True) -> GroupSeal:
    return GroupSeal(keys or (OLD,), group, me, has_aes=aes)


def plain(source: Address = A, target: Address = B, full: bool = False) -> Datagram:
    buffers = encode(group_id("g"), source, [FRAME], full, target)
    return Datagram(target, buffers, sum(map(len, buffers)))


def sealed_by(seal: GroupSeal, datagram: Datagram | None = None) -> bytes:
    (sealed,) = seal.seal([datagram or plain()])
    data = b"".join(sealed.buffers)
    assert len(data) == sealed.nbytes
    return data


@pytest.mark.parametrize("aes", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_a_sealed_datagram_opens_as_it_was(aes: bool, full: bool) -> None:
    original = plain(full=full)
    data = sealed_by(seal_of(aes=aes), original)
    assert len(data) == original.nbytes + OVERHEAD
    opened = bytes(seal_of(B, aes=True).open(data))
    assert opened == b"".join(original.buffers)
    assert decode(opened, group_id("g"), B) == (A, [FRAME])


def test_a_view_of_memory_opens_as_bytes_do() -> None:
    data = sealed_by(seal_of())
    assert bytes(seal_of(B).open(memoryview(data))) == b"".join(plain().buffers)


def test_nothing_of_the_content_or_the_name_is_readable() -> None:
    buffers = encode(group_id("g"), A, [FRAME])
    data = sealed_by(seal_of(), Datagram(None, buffers, sum(map(len, buffers))))
    assert group_id("g").to_bytes(8, "big") not in data
    assert b"".join(buffers)[32:] not in data


def test_a_datagram_opens_once() -> None:
    sender, receiver = seal_of(), seal_of(B)
    first, second = sealed_by(sender), sealed_by(sender)
    assert first != second
    receiver.open(second)
    receiver.open(first)
    for again in (first, second):
        with pytest.raises(Replayed):
            receiver.open(again)


def test_every_flipped_bit_is_noticed_and_leaves_the_window_as_it_was() -> None:
    data, receiver = sealed_by(seal_of()), seal_of(B)
    for place in range(8 * len(data)):
        spoilt = bytearray(data)
        spoilt[place // 8] ^= 1 << place % 8
        with pytest.raises(RemoteError):
            receiver.open(bytes(spoilt))
    receiver.open(data)


def test_every_truncation_and_extension_is_noticed() -> None:
    data, receiver = sealed_by(seal_of()), seal_of(B)
    for end in range(len(data)):
        with pytest.raises(RemoteError):
            receiver.open(data[:end])
    with pytest.raises(WrongKey):
        receiver.open(data + b"\0")
    receiver.open(data)


def test_headers_cannot_be_swapped() -> None:
    sender, receiver = seal_of(), seal_of(B)
    to_me, to_all = sealed_by(sender), sealed_by(sender, plain(target=EVERYBODY))
    for at in (KEY_ID_AT, COUNTER_AT, SEALED_AT):
        with pytest.raises(WrongKey):
            receiver.open(to_me[:at] + to_all[at:])


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: b"XX" + data[2:], Malformed),
        (lambda data: data[:2] + b"\x09" + data[3:], WrongVersion),
        (lambda data: b"".join(plain().buffers), Unsealed),
        (lambda data: data[:50], Malformed),
        (lambda data: b"", Malformed),
    ],
)
def test_a_refusal_says_why(spoil: Callable[[bytes], bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        seal_of(B).open(spoil(sealed_by(seal_of())))


def test_another_key_another_group_and_oneself_are_refused() -> None:
    data = sealed_by(seal_of())
    with pytest.raises(WrongKey):
        seal_of(B, NEW).open(data)
    with pytest.raises(WrongKey):
        seal_of(B, group="other").open(data)
    with pytest.raises(NotForMe):
        seal_of(A).open(data)


def test_a_sender_cannot_be_impersonated_by_one_who_knows_another_senders_key() -> None:
    data = sealed_by(seal_of(Address(73)))
    forged = data[:12] + A.to_bytes(8, "big") + data[20:]
    with pytest.raises(WrongKey):
        seal_of(B).open(forged)


def test_rotation_loses_nothing_and_ends_with_the_old_key_refused() -> None:
    sender, receiver = seal_of(A, OLD), seal_of(B, OLD)
    receiver.open(sealed_by(sender))
    receiver.use((OLD, NEW))
    before = sealed_by(sender)
    sender.use((NEW, OLD))
    receiver.open(sealed_by(sender))
    receiver.open(before)
    receiver.use((NEW,))
    late = seal_of(A, OLD)
    with pytest.raises(WrongKey):
        receiver.open(sealed_by(late))
    receiver.open(sealed_by(sender))
    with pytest.raises(WrongKey):
        receiver.open(before)


def test_a_replay_after_a_rotation_is_refused() -> None:
    sender, receiver = seal_of(A, OLD), seal_of(B, OLD, NEW)
    data = sealed_by(sender)
    receiver.open(data)
    sender.use((NEW,))
    receiver.open(sealed_by(sender))
    with pytest.raises(Replayed):
        receiver.open(data)


def test_senders_beyond_the_bound_cannot_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SENDERS_MAX", 4)
    receiver = seal_of(B)
    recorded = [sealed_by(seal_of(Address(100 + n)), plain(Address(100 + n))) for n in range(20)]
    for data in recorded:
        receiver.open(data)
    for data in recorded:
        with pytest.raises(Replayed):
            receiver.open(data)


def test_a_pair_of_key_and_nonce_never_repeats() -> None:
    used = set[tuple[bytes, bytes]]()
    for life in range(50):
        address = Address(1000 + life)
        seal = seal_of(address)
        for datagrams in ([plain(address)] * 200, [plain(address)] * 200):
            for sealed in seal.seal(datagrams):
                head = bytes(sealed.buffers[0])
                used.add((head[:20], head[COUNTER_AT:]))
    assert len(used) == 50 * 400


def test_a_fork_has_no_key() -> None:
    seal = seal_of()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, bytes((len(seal.seal([plain()])), len(seal._openers))))
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 8) == b"\0\0"
    os.close(read)
    os.close(write)
    assert len(seal.seal([plain()])) == 1


def test_a_life_ends_before_its_counters_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTER_MAX", 2)
    seal = seal_of()
    seal.seal([plain(), plain()])
    with pytest.raises(Closed, match="join again"):
        seal.seal([plain()])


def test_without_the_package_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ringcast.closed.ciphers", None)
    with pytest.raises(ConfigError, match=r"pip install 'ringcast\[closed\]'"):
        seal_of()


def test_a_seal_shows_key_ids_only_and_is_not_copied() -> None:
    seal = seal_of(A, NEW, OLD)
    assert repr(seal) == f"GroupSeal(key ids {NEW.id:02x}, {OLD.id:02x})"
    with pytest.raises(TypeError, match="one life"):
        copy.copy(seal)


def test_the_group_tag_depends_on_key_and_name() -> None:
    assert len({group_tag(OLD, "g"), group_tag(NEW, "g"), group_tag(OLD, "h")}) == 3
