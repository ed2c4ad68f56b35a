"""Runs a member's discovery methods beside it: a look may block and must not delay the member.

A name service may take many seconds to answer, and a disk may hang; so each method has a thread of
its own. Sightings are handed to the discovery under the member's lock, with its next step.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from ringcast.control.discovery import Discovery, DiscoveryPart, Sighting
from ringcast.core.model.events import Event
from ringcast.core.stack.stack import Stack
from ringcast.runtime.discovery.directory_discovery import SharedDirectory
from ringcast.runtime.discovery.dns_discovery import DnsDiscovery
from ringcast.runtime.discovery.method import (
    DiscoveryMethod,
    Searcher,
    make_methods,
    register_discovery,
)

register_discovery("dns", DnsDiscovery)
register_discovery("file", SharedDirectory)


class BackgroundDiscovery:
    """Runs the methods of one member (a MemberListener): begins and ends with it."""

    def __init__(self, spec: Discovery) -> None:
        self._spec = spec
        self._methods: dict[str, DiscoveryMethod] = {}
        self._sightings: dict[str, Sighting] = {}
        """The last sightings, not handed over yet; both sides touch it with one operation."""
        self._over = threading.Event()

    # What the member tells (runtime.member.observer), under its lock ------------------------------

    def begin(self, stack: Stack) -> None:
        """Start to look. Raises ConfigError when a method cannot work."""
        self._stack = stack
        self._part = next(part for part in stack.parts if isinstance(part, DiscoveryPart))
        self._methods = make_methods(Searcher(stack.env.peer, stack.group, self._spec))
        for key, method in self._methods.items():
            work = threading.Thread(
                target=self._run, args=(key, method), name=f"ringcast-look-{key}", daemon=True
            )
            work.start()

    def taken(self, events: Sequence[Event]) -> None:
        """Not used here."""

    def settled(self, is_blocked: bool) -> None:
        """Hand over the sightings."""
        while self._sightings:
            self._part.suggest(*self._sightings.popitem())

    def end(self) -> None:
        """Stop looking; a look under way is not waited for."""
        self._over.set()
        for method in self._methods.values():
            method.close()

    # The threads ----------------------------------------------------------------------------------

    def _run(self, key: str, method: DiscoveryMethod) -> None:
        while not self._over.is_set():
            try:
                method.announce()
                if self._is_searching:
                    self._sightings[key] = method.look()
            except OSError as error:
                self._sightings[key] = Sighting((), f"cannot be read: {error.strerror}")
            refresh = self._spec.refresh
            until_next = refresh if self._stack.view else min(method.pause, refresh)
            self._over.wait(until_next * random.uniform(0.75, 1.25))
        method.close()  # It may have announced once more while the member was closed.

    @property
    def _is_searching(self) -> bool:
        """Whether this member asks others: it has no group yet, or coordinates one."""
        view = self._stack.view
        return view is None or view.coordinator == self._stack.env.me
