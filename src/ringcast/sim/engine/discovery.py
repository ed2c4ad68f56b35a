"""What members of a world find when they look at a name or a directory: all members, at once."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.control.discovery import DiscoveryPart, Sighting
from ringcast.core.stack.stack import Stack


def show_places(stacks: Iterable[Stack], places: Iterable[str]) -> None:
    """Suggest these places to all whose discovery looks at a name or a directory."""
    sighting = Sighting(tuple(places))
    for stack in stacks:
        for part in stack.parts:
            if isinstance(part, DiscoveryPart):
                for way in filter(None, (part.spec.dns, part.spec.file)):
                    part.suggest(way, sighting)
