"""Discovery by a name in DNS: every address of the name is asked, at one port."""

from __future__ import annotations

import socket

from ringcast.control.discovery import PLACES_MAX, Sighting
from ringcast.runtime.discovery.method import Searcher
from ringcast.runtime.net.endpoints import join_endpoint, split_endpoint

LOOK_SECONDS = 1.0
"""Seconds between two questions to the name service while there is no group yet."""


class DnsDiscovery:
    """Looks up one name (a `DiscoveryMethod`)."""

    pause = LOOK_SECONDS

    def __init__(self, name: str, searcher: Searcher) -> None:
        self._name = name
        is_six = searcher.peer.endpoint.startswith("[")
        self._family = socket.AF_INET6 if is_six else socket.AF_INET

    def announce(self) -> None:
        """Nothing: others publish the name."""

    def look(self) -> Sighting:
        """Every address of the name, with its port."""
        return look_up(self._name, self._family)

    def close(self) -> None:
        """Nothing was published."""


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
