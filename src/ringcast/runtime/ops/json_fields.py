"""Reading plain data from JSON: a value of the wrong type counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Plain = Mapping[str, object]


def map_in(data: Plain, key: str) -> Plain:
    """The mapping under a key."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def maps_in(data: Plain, key: str) -> list[Plain]:
    """The mappings of a list under a key."""
    value = data.get(key)
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def texts_in(data: Plain, key: str) -> list[str]:
    """The texts of a list under a key."""
    value = data.get(key)
    return [str(v) for v in value] if isinstance(value, list) else []


def numbers_in(data: Plain) -> Iterator[tuple[str, float]]:
    """Every key whose value is a number."""
    for key, value in data.items():
        if isinstance(value, int | float):
            yield str(key), value


def text_in(data: Plain, key: str) -> str:
    """The text under a key."""
    value = data.get(key)
    return "" if value is None else str(value)


def number_in(data: Plain, key: str) -> int:
    """The whole number under a key."""
    value = data.get(key)
    return value if isinstance(value, int) else 0


def names_in(status: Plain) -> dict[str, str]:
    """What people call each member, by its address."""
    return {text_in(peer, "address"): text_in(peer, "name") for peer in maps_in(status, "peers")}


def blocked_in(status: Plain) -> list[float]:
    """How long each blocked sender has waited, in seconds."""
    blocked = status.get("blocked_senders")
    waits = blocked if isinstance(blocked, list) else []
    return [float(seconds) for seconds in waits if isinstance(seconds, int | float)]
