"""A stranger that asks which members exist, with the real transport and codec, and never joins.

Its address is higher than any member's, so that no joiner that searches as well lets it go first.
"""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Callable, Sequence
from typing import Self

from ringcast.closed.keys import Keys
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW
from ringcast.core.stack.part import Spec
from ringcast.core.wire.codec import decode, encode, source_of
from ringcast.core.wire.frames import Discover, Present
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.segments import one_by_one
from ringcast.errors import RemoteError, WrongGroup, WrongVersion
from ringcast.runtime.net.registry import make_transport

NAME = "doctor"
ASK_INTERVAL = 0.2
"""Seconds between two questions, since each of them may be lost."""
RECEIVE_MAX = 64
HEARD_MAX = 1_024
"""Members and strangers that are remembered."""


class DiscoveryProbe:
    """Asks, and remembers the members that answered."""

    def __init__(self, spec: Spec, group: int, name: str = "", keys: Keys = ()) -> None:
        """Opens the network; name and keys are those of a closed group. Raises ConfigError."""
        self.me = Address((1 << 63) + secrets.randbits(62))
        self.transport = make_transport(spec)
        self._seal = GroupSeal(keys, name, self.me) if keys else None
        if self._seal is None:
            self.transport.open(self.me, group)
        else:
            self.transport.secure(self._seal)
            self.transport.open(self.me, self._seal.tags[0])
        self.refused: set[type[RemoteError]] = set()
        """Why datagrams were refused that are sealed, or are not: Sealed, Unsealed, WrongKey."""
        self.present: dict[Address, Present] = {}
        """Who has answered."""
        self.askers: set[Address] = set()
        """Who asks the same group."""
        self.other_groups: set[Address] = set()
        self.other_versions: set[str] = set()
        """What was said of another version, once each."""
        self._group = group
        self._peer = Peer(self.me, NAME, self.transport.endpoint)

    def question(self, direct: bool) -> bytes:
        """Ask which members exist: one endpoint, or all."""
        frame = Discover(self._peer, NO_VIEW, int(direct))
        data = b"".join(encode(self._group, self.me, [frame]))
        if self._seal is None:
            return data
        (sealed,) = self._seal.seal([Datagram(None, [data], len(data))])
        return b"".join(sealed.buffers)

    def ask(self, target: str | None) -> None:
        """Ask one endpoint, or all members that multicast reaches."""
        data = self.question(target is not None)
        self.transport.send([Datagram(target, [data], len(data))], ())

    def listen(self) -> None:
        """Read the answers that have arrived."""
        for datagram in one_by_one(self.transport.receive(RECEIVE_MAX)):
            self._hear(datagram)

    def _hear(self, datagram: bytes | memoryview) -> None:
        try:
            if self._seal is not None:
                datagram = self._seal.open(datagram)
            source, frames = decode(datagram, self._group)
        except WrongGroup:
            _note(self.other_groups, source_of(datagram))
            return
        except WrongVersion as error:
            if len(self.other_versions) < HEARD_MAX:
                self.other_versions.add(str(error))
            return
        except RemoteError as error:
            self.refused.add(type(error))
            return
        for frame in frames:
            if isinstance(frame, Present) and len(self.present) < HEARD_MAX:
                self.present[source] = frame
            elif isinstance(frame, Discover):
                _note(self.askers, source)

    def counted(self, prefix: str) -> set[str]:
        """What the transport has counted under names that begin so."""
        counters = self.transport.stats().items()
        return {name for name, count in counters if count and name.startswith(prefix)}

    def close(self) -> None:
        """Let go of the network."""
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask_repeatedly(
    probes: Sequence[DiscoveryProbe],
    ask: Callable[[], None],
    seconds: float,
    done: Callable[[], bool] = lambda: False,
) -> None:
    """Ask again and again, and listen, until it is done or the time is over."""
    until = time.monotonic() + seconds
    next_ask = 0.0
    while not done() and (now := time.monotonic()) < until:
        if now >= next_ask:
            ask()
            next_ask = now + ASK_INTERVAL
        due = min(until, next_ask, *(probe.transport.deadline for probe in probes))
        waited_for = [fd for probe in probes for fd in probe.transport.filenos()]
        select.select(waited_for, (), (), max(due - now, 0.0))
        for probe in probes:
            probe.listen()


def _note(heard: set[Address], address: Address | None) -> None:
    if address is not None and len(heard) < HEARD_MAX:
        heard.add(address)
