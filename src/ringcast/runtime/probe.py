"""A stranger who asks who is there, with the real transport and codec, and never joins.

Its address is higher than any member's, so that nobody who searches as well lets it go first.
"""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ringcast.core.address import Address, Peer
from ringcast.core.codec import decode, encode, source_of
from ringcast.core.frames import Discover, Present
from ringcast.core.outbox import Datagram
from ringcast.core.part import Spec
from ringcast.core.view import NO_VIEW
from ringcast.errors import RemoteError, WrongGroup, WrongVersion
from ringcast.runtime.transport import make_transport

NAME = "doctor"
ASK_INTERVAL = 0.2
"""Seconds between two questions, since each of them may be lost."""
RECEIVE_MAX = 64
HEARD_MAX = 1_024
"""Members and strangers that are remembered."""


class Probe:
    """Asks, and remembers who was heard."""

    def __init__(self, spec: Spec, group: int) -> None:
        """Opens the network. Raises ConfigError."""
        self.me = Address((1 << 63) + secrets.randbits(62))
        self.transport = make_transport(spec)
        self.transport.open(self.me, group)
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
        """Who is there? To one alone, or to all."""
        frame = Discover(self._peer, NO_VIEW, int(direct))
        return b"".join(encode(self._group, self.me, [frame]))

    def ask(self, target: str | None) -> None:
        """Ask one endpoint, or everybody that multicast reaches."""
        data = self.question(target is not None)
        self.transport.send([Datagram(target, [data], len(data))], ())

    def listen(self) -> None:
        """Take what has come."""
        for datagram in self.transport.receive(RECEIVE_MAX):
            self._hear(datagram)

    def _hear(self, datagram: bytes | memoryview) -> None:
        try:
            source, frames = decode(datagram, self._group)
        except WrongGroup:
            _note(self.other_groups, source_of(datagram))
            return
        except WrongVersion as error:
            if len(self.other_versions) < HEARD_MAX:
                self.other_versions.add(str(error))
            return
        except RemoteError:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def ask_around(
    probes: Sequence[Probe],
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
