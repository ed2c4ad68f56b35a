"""The seal of one member's life: AES-256-GCM, or ChaCha20-Poly1305 without AES instructions.

Each sender's life has a key of its own: an address is 63 random bits, new for every life. So
counters begin at 1, no (key, nonce) is used twice, and nothing has to be kept on disk. A fork drops
the keys, since it would count on from the same counter.

`open` looks at the replay window, verifies the tag, and only then marks the counter. Before that it
keeps nothing of a datagram, not even the sender's derived key.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol
from weakref import WeakSet

from ringcast.closed.keys import Key, Keys
from ringcast.closed.replay import ReplayWindow
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import group_id
from ringcast.core.wire.layout import FLAG_FULL_CHECKSUM, FLAG_SEALED, HEADER, MAGIC, VERSION
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.seal import (
    COUNTER,
    COUNTER_AT,
    FLAG_CHACHA,
    OVERHEAD,
    SEALED_AT,
    SEALED_MIN,
    TAG_SIZE,
)
from ringcast.errors import (
    Closed,
    ConfigError,
    Malformed,
    NotForMe,
    Replayed,
    Unsealed,
    WrongKey,
    WrongVersion,
)

COUNTER_MAX = 2**48
"""Datagrams of one life: far beyond what a process sends, and far below the cipher's limits."""
SENDERS_MAX = 4_096
"""Senders whose windows are kept; of more, the half that was heard last."""
FORMER_SENDERS_MAX = 65_536
"""Senders of which only the highest counter is kept: all that they sent counts as replayed."""

_PREFIX = slice(0, 12)
"""Magic, version, flags and group tag: what says by which key a datagram is sealed."""
_SOURCE = slice(12, 20)
_NONCE_BEGIN = bytes(4)


class Cipher(Protocol):
    """An AEAD cipher of `cryptography`."""

    def encrypt(self, nonce: bytes, data: memoryview, associated_data: bytes, /) -> bytes: ...

    def decrypt_into(
        self, nonce: bytes, data: memoryview, associated_data: bytes, buf: memoryview, /
    ) -> int: ...


class _Opener(NamedTuple):
    """What a datagram's prefix says of it."""

    key: Key
    flags: int
    inner: bytes
    """The prefix of the datagram before it was sealed."""


class _Sender:
    """A sender that was verified."""

    __slots__ = ("cipher", "heard", "opener", "window")

    def __init__(self, opener: _Opener, cipher: Cipher, window: ReplayWindow) -> None:
        self.opener = opener
        self.cipher = cipher
        self.window = window
        self.heard = 0
        """When it was heard last, counted in datagrams."""


class GroupSeal:
    """Seals the datagrams of one life of a member, and opens those of others."""

    overhead = OVERHEAD

    def __init__(self, keys: Keys, group: str, me: Address, *, has_aes: bool | None = None) -> None:
        """has_aes: whether to seal by AES; None asks the processor. Raises ConfigError."""
        ciphers = _load_ciphers()
        self._aes, self._chacha = ciphers.AESGCM, ciphers.ChaCha20Poly1305
        self._invalid = ciphers.InvalidTag
        self._group = group
        self._me = me.to_bytes(8, "big")
        self._algorithm = 0 if (_has_aes() if has_aes is None else has_aes) else FLAG_CHACHA
        self._number = group_id(group).to_bytes(8, "big")
        self._counter = 0
        self._opened = 0
        self._senders: dict[bytes, _Sender] = {}
        self._former: dict[bytes, int] = {}
        self._buffer = memoryview(bytearray(65_536))
        self._openers: dict[bytes, _Opener] = {}
        self._cipher: Cipher | None = None
        self.use(keys)
        _live.add(self)

    def use(self, keys: Keys) -> None:
        """Seal with the first of these keys from now on, and open with all of them."""
        if not keys:
            raise ConfigError("no key is left: give at least one")
        self._keys = tuple(keys)
        openers: dict[bytes, _Opener] = {}
        for key in reversed(keys):  # The first one wins, should two have one tag.
            tag = group_tag(key, self._group)
            for flags in (0, FLAG_FULL_CHECKSUM, FLAG_CHACHA, FLAG_CHACHA | FLAG_FULL_CHECKSUM):
                inner = _prefix(flags & FLAG_FULL_CHECKSUM, self._number)
                sealed = _prefix(FLAG_SEALED | flags, tag)
                openers[sealed] = _Opener(key, flags & FLAG_CHACHA, inner)
        self._openers = openers
        first = keys[0]
        tag = group_tag(first, self._group)
        self._prefixes = {
            flags: _prefix(FLAG_SEALED | self._algorithm | flags, tag) + self._me
            for flags in (0, FLAG_FULL_CHECKSUM)
        }
        self._id = bytes((first.id,))
        self._cipher = self._sender_cipher(first, self._me, self._algorithm)
        self.tags: tuple[int, ...] = tuple(
            int.from_bytes(group_tag(key, self._group), "big") for key in keys
        )
        """What stands in the place of the group's number, for each key."""
        self.key_ids = tuple(f"{key.id:02x}" for key in keys)
        """The first seals, all open."""

    def drop_keys(self) -> None:
        """Seal and open nothing any more."""
        self._cipher = None
        self._keys, self.tags = (), ()
        self._openers, self._senders, self._prefixes = {}, {}, {}

    def key_id_of(self, sender: Address) -> str | None:
        """The id of the key that a sender used last; None when it was not heard."""
        found = self._senders.get(sender.to_bytes(8, "big"))
        return None if found is None else f"{found.opener.key.id:02x}"

    def prove(self, tag: int, transcript: bytes) -> bytes:
        """Proof that this side has the key with this tag; empty when it has not."""
        for key, known in zip(self._keys, self.tags, strict=True):
            if known == tag:
                return key.derive("link", self._group.encode(), transcript)
        return b""

    # Sending --------------------------------------------------------------------------------------

    def seal(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
        """The datagrams sealed, each with a counter of its own; none when the key was dropped."""
        cipher, counter = self._cipher, self._counter
        if cipher is None:
            return []
        if counter + len(datagrams) > COUNTER_MAX:
            raise Closed("this member has sealed as much as one life may: join again")
        sealed: list[Datagram] = []
        self._counter += len(datagrams)
        for target, buffers, nbytes, _ in datagrams:
            counter += 1
            count = COUNTER.pack(counter)
            whole = memoryview(b"".join(buffers))
            aad = b"".join((self._prefixes[whole[3]], whole[20 : HEADER.size], self._id, count))
            body = cipher.encrypt(_NONCE_BEGIN + count, whole[HEADER.size :], aad)
            sealed.append(Datagram(target, [aad, body], nbytes + OVERHEAD))
        return sealed

    # Receiving ------------------------------------------------------------------------------------

    def open(self, datagram: bytes | memoryview) -> memoryview:
        """The datagram as it was before it was sealed; good until the next call.

        Raises Malformed, WrongVersion, Unsealed, WrongKey, NotForMe or Replayed, and has changed
        nothing then.
        """
        head = bytes(datagram[:SEALED_AT])
        opener = self._openers.get(head[_PREFIX])
        size = len(datagram)
        if opener is None or size < SEALED_MIN:
            raise _refusal(head, size)
        source = head[_SOURCE]
        if source == self._me:
            raise NotForMe("sent by this member itself")
        count = head[COUNTER_AT:]
        counter = int.from_bytes(count, "big")
        sender = self._senders.get(source)
        window = ReplayWindow(self._former.get(source, 0)) if sender is None else sender.window
        if not counter:
            raise Malformed("a counter that no sender begins with")
        if window.is_used(counter):
            raise Replayed("a datagram that was opened before, or is too old to tell")
        if sender is not None and sender.opener.key is opener.key:
            cipher = sender.cipher
        else:
            cipher = self._sender_cipher(opener.key, source, opener.flags)
        end = HEADER.size + size - SEALED_AT - TAG_SIZE
        if end > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        opened = self._buffer[:end]
        body = memoryview(datagram)[SEALED_AT:]
        try:
            cipher.decrypt_into(_NONCE_BEGIN + count, body, head, opened[HEADER.size :])
        except self._invalid:
            raise WrongKey("sealed with another key, or altered on its way") from None
        window.mark(counter)
        if sender is None or cipher is not sender.cipher:
            sender = self._remember(source, _Sender(opener, cipher, window))
        self._opened += 1
        sender.heard = self._opened
        opened[: HEADER.size] = opener.inner + head[12 : HEADER.size]
        return opened

    def _sender_cipher(self, key: Key, source: bytes, flags: int) -> Cipher:
        """The cipher of one sender's life; each algorithm has a key of its own."""
        derived = key.derive("sender", self._group.encode(), source, bytes((flags,)))
        cipher: Cipher = (self._chacha if flags & FLAG_CHACHA else self._aes)(derived)
        return cipher

    def _remember(self, source: bytes, sender: _Sender) -> _Sender:
        senders, former = self._senders, self._former
        if len(senders) >= SENDERS_MAX and source not in senders:
            by_age = sorted(senders.items(), key=lambda item: item[1].heard)
            for address, old in by_age[: SENDERS_MAX // 2]:
                former[address] = old.window.high
                del senders[address]
            while len(former) > FORMER_SENDERS_MAX:
                del former[next(iter(former))]
        former.pop(source, None)
        senders[source] = sender
        return sender

    def __repr__(self) -> str:
        return f"GroupSeal(key ids {', '.join(self.key_ids)})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a seal belongs to one life of a member: it is not copied")


def group_tag(key: Key, group: str) -> bytes:
    """What stands for the group in sealed datagrams; it tells its name to keyholders only."""
    return key.derive("group tag", group.encode())[:8]


def _load_ciphers() -> ModuleType:
    try:
        return import_module("ringcast.closed.ciphers")
    except ImportError:
        raise ConfigError(
            "a key needs the package cryptography: run `pip install 'ringcast[closed]'`"
        ) from None


def _prefix(flags: int, group: bytes) -> bytes:
    return MAGIC + bytes((VERSION, flags)) + group


def _refusal(head: bytes, size: int) -> Exception:
    """Why a datagram is not opened, as far as its header says."""
    if head[:2] != MAGIC or size < HEADER.size:
        return Malformed("not a Ringcast datagram")
    if head[2] != VERSION:
        return WrongVersion(f"version {head[2]}, this is {VERSION}")
    if not head[3] & FLAG_SEALED:
        return Unsealed("not sealed, and this group is closed")
    if size < SEALED_MIN:
        return Malformed("shorter than a sealed datagram")
    return WrongKey("sealed with a key that is not ours, or for another group")


@cache
def _has_aes() -> bool:
    """Whether the processor has instructions for AES; yes where that is unknown."""
    try:
        words = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return True
    return "aes" in words


_live: WeakSet[GroupSeal] = WeakSet()


def _on_fork() -> None:
    for seal in list(_live):
        seal.drop_keys()


os.register_at_fork(after_in_child=_on_fork)
