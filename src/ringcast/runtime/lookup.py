"""Looks at names and directories for a member, beside it: neither may keep it from its work.

A name service may take many seconds to answer, and a disk may hang; so each has a thread of its
own. What was seen is handed to the discovery under the member's lock, with its next step.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Sequence

from ringcast.core.events import Event
from ringcast.core.stack import Stack
from ringcast.parts.discovery import PLACES_MAX, Discovery, DiscoveryPart, Sighting
from ringcast.runtime.endpoints import join_endpoint, split_endpoint
from ringcast.runtime.noticeboard import open_board

NAME_PAUSE = 1.0
"""Seconds between two questions to the name service while there is no group yet."""
FILE_PAUSE = 0.2
"""The same for looks at the directory, which cost less."""
STALE_AFTER = 12
"""A notice that was not renewed for so many times `Discovery.refresh` is that of the dead."""

Look = Callable[[], Sighting]


class Lookup:
    """Watches over a member's discovery (an Observer): begins with it, and ends with it."""

    def __init__(self, spec: Discovery) -> None:
        self._spec = spec
        self._news: dict[str, Sighting] = {}
        """What was seen last and is not handed over yet; both sides touch it with one operation."""
        self._over = threading.Event()
        self._leave: Callable[[], None] = lambda: None

    # What the member says (runtime.observer.Observer), under its lock -----------------------------

    def begin(self, stack: Stack) -> None:
        """Start to look. Raises ConfigError when nothing can be written to the directory."""
        spec, peer = self._spec, stack.env.peer
        self._stack = stack
        self._part = next(part for part in stack.parts if isinstance(part, DiscoveryPart))
        if spec.file:
            board = open_board(spec.file, peer.address, stack.group, peer.name, peer.endpoint)
            stale_after = STALE_AFTER * spec.refresh

            def look() -> Sighting:
                return Sighting(tuple(notice.endpoint for notice in board.read(stale_after)))

            self._leave = board.remove
            self._start(spec.file, FILE_PAUSE, look, board.post)
        if spec.dns:
            is_six = peer.endpoint.startswith("[")
            family = socket.AF_INET6 if is_six else socket.AF_INET
            self._start(spec.dns, NAME_PAUSE, lambda: look_up(spec.dns, family), lambda: None)

    def taken(self, events: Sequence[Event]) -> None:
        """Of no concern here."""

    def settled(self, is_blocked: bool) -> None:
        """Hand over what was seen."""
        while self._news:
            self._part.suggest(*self._news.popitem())

    def end(self) -> None:
        """Stop looking; a question under way is not waited for."""
        self._over.set()
        self._leave()

    # The threads ----------------------------------------------------------------------------------

    def _start(self, way: str, pause: float, look: Look, renew: Callable[[], None]) -> None:
        name = f"ringcast-look-{way}"
        work = threading.Thread(
            target=self._run, args=(way, pause, look, renew), name=name, daemon=True
        )
        work.start()

    def _run(self, way: str, pause: float, look: Look, renew: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                renew()
                if self._is_curious:
                    self._news[way] = look()
            except OSError as error:
                self._news[way] = Sighting((), f"cannot be read: {error.strerror}")
            until_next = self._spec.refresh if self._stack.view else min(pause, self._spec.refresh)
            self._over.wait(until_next * random.uniform(0.75, 1.25))
        self._leave()  # It may have been written anew while the member was closed.

    @property
    def _is_curious(self) -> bool:
        """Whether this member asks others at all: one that looks for a group, or coordinates."""
        view = self._stack.view
        return view is None or view.coordinator == self._stack.env.me


def look_up(name: str, family: socket.AddressFamily) -> Sighting:
    """Every address of a name, with its port."""
    host, port = split_endpoint(name)
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Sighting((), _why(error))
    except (OSError, UnicodeError) as error:
        return Sighting((), f"cannot be looked up: {error}")
    addresses = sorted({join_endpoint(str(entry[4][0]), port) for entry in found})
    return Sighting(tuple(addresses[:PLACES_MAX]))


def _why(error: socket.gaierror) -> str:
    if error.errno == socket.EAI_NONAME:
        return "the name is not known"
    if error.errno == socket.EAI_NODATA:
        return "the name has no address yet"
    return f"cannot be looked up: {error.strerror}"
