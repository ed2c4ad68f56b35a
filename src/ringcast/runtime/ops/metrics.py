"""The state of members in the format of Prometheus: counters, window marks, blocked senders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from ringcast.core.stack.counters import declared
from ringcast.runtime.ops.json_fields import (
    Plain,
    blocked_in,
    map_in,
    names_in,
    numbers_in,
    text_in,
    texts_in,
)

GAUGES = {"receive_buffer"}
"""Among the transport's counters: what may go down as well."""

_HELP = {
    "ringcast_members": "Members of the view.",
    "ringcast_view_number": "The number of the view; it rises with each change.",
    "ringcast_is_coordinator": "1 for the member that makes the next view.",
    "ringcast_blocked_senders": "Calls of send that wait for room.",
    "ringcast_blocked_seconds": "Seconds that the longest of these has waited.",
    "ringcast_waits_for": "1 for each member that this sender waits for.",
    "ringcast_suspected": "1 for each member that is suspected to have crashed.",
    "ringcast_acked": "The last of this member's messages that another one has delivered.",
    "ringcast_credits": "Bytes that may be sent before all members have answered.",
    "ringcast_incomplete_bytes": "Bytes of messages of which fragments are missing.",
    "ringcast_datagram_bytes": "The largest datagram that this member sends.",
    "ringcast_congestion_window": "Bytes that may be in flight, by congestion control.",
    "ringcast_recorded": "Messages that this recorder has on disk.",
    "ringcast_recorder_lag_ms": "How old messages are when this recorder has them on disk, in ms.",
    "ringcast_aside_bytes": "Bytes put aside while the application is blocked in its own send.",
}

_FIGURES = {
    "flow": ("credits",),
    "fragment": ("incomplete_bytes",),
    "multicast": ("congestion_window",),
    "wire": ("datagram_bytes",),
    "application": ("aside_bytes", "recorded", "recorder_lag_ms"),
}
"""By role: what is a metric as it is."""

_WINDOWS = {
    "ringcast_sent": "This member's own messages",
    "ringcast_window": "The messages of one sender",
    "ringcast_unicast_sent": "The messages to one member alone",
    "ringcast_unicast_window": "The messages of one sender for this member alone",
}
_MARKS = {
    "low": "delivered by all up to here",
    "delivered": "delivered up to here",
    "handed": "handed to the application up to here",
    "high": "known of up to here",
    "missing": "how many are missing",
    "bytes": "bytes that are held",
}

Sample = tuple[str, dict[str, str], float]
"""The name of a metric, the labels besides the member's own, and the value."""


def described() -> dict[str, str]:
    """Every metric that is not a counter, with its meaning."""
    marks = {
        f"{window}_{mark}": f"{whose}: {what}."
        for window, whose in _WINDOWS.items()
        for mark, what in _MARKS.items()
    }
    return {**_HELP, **marks}


def render(*snapshots: Plain) -> str:
    """The state of one member or of several, as `Group.stats()` gives it, for Prometheus."""
    families: dict[str, list[str]] = {}
    several = Counter((text_in(s, "group"), text_in(s, "name")) for s in snapshots)
    for snapshot in snapshots:
        own = {"group": text_in(snapshot, "group"), "member": text_in(snapshot, "name")}
        if several[own["group"], own["member"]] > 1:
            own["member"] += f"@{text_in(snapshot, 'me')}"
        for name, labels, value in _samples(snapshot):
            line = f"{name}{_labels({**own, **labels})} {_number(value)}"
            families.setdefault(name, []).append(line)
    lines: list[str] = []
    for name, samples in families.items():
        if about := _about(name):
            lines.append(f"# HELP {name} {about}")
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.extend([f"# TYPE {name} {kind}", *samples])
    return "\n".join([*lines, ""]) if lines else ""


def _about(name: str) -> str:
    window, _, mark = name.rpartition("_")
    if window in _WINDOWS and mark in _MARKS:
        return f"{_WINDOWS[window]}: {_MARKS[mark]}."
    if name in _HELP:
        return _HELP[name]
    counter = name.removesuffix("_total")
    for prefix in ("ringcast_transport_", "ringcast_"):
        found = declared(counter.removeprefix(prefix)) if counter.startswith(prefix) else None
        if found is not None:
            return f"{found.about} In {found.unit}."
    return ""


# What is measured ---------------------------------------------------------------------------------


def _samples(snapshot: Plain) -> Iterator[Sample]:
    names = _distinct(names_in(snapshot))
    yield "ringcast_members", {}, len(texts_in(snapshot, "members"))
    yield "ringcast_view_number", {}, _view_number(snapshot)
    yield from _waiting(snapshot)
    yield from _of_parts(snapshot, names)
    yield from _counters(map_in(snapshot, "counters"), "ringcast")
    yield from _counters(map_in(snapshot, "transport"), "ringcast_transport")


def _waiting(snapshot: Plain) -> Iterator[Sample]:
    seconds = blocked_in(snapshot)
    yield "ringcast_blocked_senders", {}, len(seconds)
    yield "ringcast_blocked_seconds", {}, max(seconds, default=0.0)
    for name in dict.fromkeys(texts_in(snapshot, "waits_for")) if seconds else ():
        yield "ringcast_waits_for", {"peer": name}, 1


def _of_parts(snapshot: Plain, names: Mapping[str, str]) -> Iterator[Sample]:
    """What the parts say, by their roles, and the figures of the application."""
    multicast, unicast = map_in(snapshot, "multicast"), map_in(snapshot, "unicast")
    yield from _marks("ringcast_sent", {}, map_in(multicast, "sent"))
    for peer, name in _peers(multicast, "windows", names):
        yield from _marks("ringcast_window", {"sender": name}, peer)
    for peer, name in _peers(unicast, "to", names):
        yield from _marks("ringcast_unicast_sent", {"peer": name}, peer)
    for peer, name in _peers(unicast, "from", names):
        yield from _marks("ringcast_unicast_window", {"sender": name}, peer)
    for address, value in numbers_in(map_in(multicast, "acks")):
        yield "ringcast_acked", {"peer": names.get(address, address)}, value
    for role, keys in _FIGURES.items():
        for key, value in numbers_in(map_in(snapshot, role)):
            if key in keys:
                yield f"ringcast_{key}", {}, value
    if role := text_in(map_in(snapshot, "membership"), "role"):
        yield "ringcast_is_coordinator", {}, role == "coordinator"
    for address in texts_in(map_in(snapshot, "failure"), "suspected"):
        yield "ringcast_suspected", {"peer": names.get(address, address)}, 1


def _marks(name: str, labels: dict[str, str], marks: Plain) -> Iterator[Sample]:
    for mark, value in numbers_in(marks):
        yield f"{name}_{'bytes' if mark == 'nbytes' else mark}", labels, value


def _counters(counters: Plain, prefix: str) -> Iterator[Sample]:
    for name, value in numbers_in(counters):
        full = re.sub(r"\W", "_", f"{prefix}_{name}", flags=re.ASCII)
        yield full if name in GAUGES else f"{full}_total", {}, value


# Writing it down ----------------------------------------------------------------------------------


def _peers(part: Plain, key: str, names: Mapping[str, str]) -> Iterator[tuple[Plain, str]]:
    """Per member: what the part says about it, and its name."""
    for address, value in map_in(part, key).items():
        if isinstance(value, Mapping):
            yield value, names.get(address, address)


def _distinct(names: Mapping[str, str]) -> dict[str, str]:
    """The names of members, with the address where several have one: no series may come twice."""
    several = Counter(names.values())
    return {
        address: name if name and several[name] == 1 else f"{name}@{address}"
        for address, name in names.items()
    }


def _view_number(snapshot: Plain) -> int:
    number = text_in(snapshot, "view").partition("@")[0]
    return int(number) if number.isdecimal() else 0


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
