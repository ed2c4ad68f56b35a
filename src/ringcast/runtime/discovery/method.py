"""Discovery methods: each looks somewhere outside the group and returns endpoints to ask.

Multicast and seeds need no look and are part of `control.discovery`. The methods here need files or
a name service, which may block, so each runs in a thread of its own (`background`). A new method is
one file with a class like `dns_discovery.DnsDiscovery` and one call of `register_discovery`, or an
entry point "ringcast.discovery" of an installed package that names the class; members use it with
`Discovery(methods=("name:argument",))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol

from ringcast.control.discovery import Discovery, Sighting
from ringcast.core.model.address import Peer
from ringcast.errors import ConfigError


class DiscoveryMethod(Protocol):
    """Where to look for members. All methods run in one thread, and may block."""

    @property
    def pause(self) -> float:
        """Seconds between two looks while this member has no group yet."""
        ...

    def announce(self) -> None:
        """Publish where this member is, if the method can; before each look. May raise OSError."""
        ...

    def look(self) -> Sighting:
        """The endpoints that can be asked now. May raise OSError."""
        ...

    def close(self) -> None:
        """Withdraw what was published. May be called twice, and from another thread."""
        ...


class Searcher(NamedTuple):
    """The member that looks for others."""

    peer: Peer
    group: str
    spec: Discovery


MakeMethod = Callable[[str, Searcher], DiscoveryMethod]
"""Makes a method from its argument. Raises ConfigError."""

_methods: dict[str, MakeMethod] = {}
ENTRY_POINTS = "ringcast.discovery"
"""The group of entry points under which installed packages declare methods."""


def register_discovery(name: str, make: MakeMethod) -> None:
    """Let members use the method `name`."""
    _methods[name] = make


def chosen_methods(spec: Discovery) -> Iterator[tuple[str, str, str]]:
    """For each method of a spec: the key of its sightings, its name and its argument."""
    for name in ("dns", "file"):
        if argument := getattr(spec, name):
            yield argument, name, argument
    for text in spec.methods:
        name, _, argument = text.partition(":")
        yield text, name, argument


def make_methods(searcher: Searcher) -> dict[str, DiscoveryMethod]:
    """The methods of a spec, by the key of their sightings. Raises ConfigError."""
    made: dict[str, DiscoveryMethod] = {}
    try:
        for key, name, argument in chosen_methods(searcher.spec):
            make = _methods.get(name) or _installed(name)
            if make is None:
                known = ", ".join(sorted(_methods))
                raise ConfigError(
                    f'Discovery.methods has "{key}", and no method is called "{name}": use one of'
                    f" {known}, or import the module that registers it"
                )
            made[key] = make(argument, searcher)
    except BaseException:
        for method in made.values():
            method.close()
        raise
    return made


def _installed(name: str) -> MakeMethod | None:
    """The method that an installed package declares under this name."""
    for point in entry_points(group=ENTRY_POINTS, name=name):
        register_discovery(name, point.load())
    return _methods.get(name)
