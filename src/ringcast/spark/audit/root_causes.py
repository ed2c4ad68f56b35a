"""Finds what explains many violations at once: traces read twice, views installed twice, clocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ringcast.spark.report.scale import seconds
from ringcast.trace.judging.history import find_reinstalled
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.schema import MESSAGE_KINDS, Row
from ringcast.trace.violations import Violation

INSTALLED_SHOWN = 3
"""Members that are named for having installed a view twice."""
CLOCK_US = 1_000_000
"""Clocks that are farther apart than this are told, also where no message seems to be early."""

Name = Callable[[int], str]
"""What people call a member."""

Shown = tuple[Violation, Sequence[Mapping[str, Any]]]
"""A violation with the rows that show it."""

DOUBLES = ("repeated", "numbered-twice")
"""Causes that rows which are read twice bring about."""

Latencies = Mapping[tuple[int, int], int]
"""The shortest latency by receiver and sender, in microseconds; negative with clocks apart."""


def root_causes(
    installs: Sequence[Row],
    latencies: Latencies,
    skew_us: int,
    name: Name,
    shown: Sequence[Shown] = (),
) -> list[str]:
    """Sentences about what explains violations, the most far-reaching first."""
    copies = _copies(installs)
    return [
        *_read_twice(copies, name),
        *_copied(dict.fromkeys(_owners(shown) - copies.keys(), 2), name),
        *_installed_twice([row for row in installs if row.member not in copies], name),
        *_clocks(latencies, skew_us, name),
    ]


def _copies(installs: Sequence[Row]) -> dict[int, int]:
    """How often the trace of a member is there, where that is more than once."""
    rows = defaultdict[int, Counter[Row]](Counter)
    for row in installs:
        rows[row.member][row] += 1
    copies = {member: min(times.values()) for member, times in rows.items()}
    return {member: count for member, count in copies.items() if count > 1}


def _read_twice(copies: Mapping[int, int], name: Name) -> Iterator[str]:
    if copies:
        yield (
            f"Every view row of {_listed(copies, name)} is there {max(copies.values())} times: the "
            "same traces are read more than once. Remove the copies and audit again."
        )


def _owners(shown: Sequence[Shown]) -> set[int]:
    """Of whose messages rows are there twice, alike in everything, which no group brings about."""
    owners = set[int]()
    for violation, rows in shown:
        if violation.cause in DOUBLES:
            alike = Counter(str(row) for row in rows if row["kind"] in MESSAGE_KINDS)
            if any(count > 1 for count in alike.values()):
                owners.add(violation.member)
    return owners


def _copied(owners: Mapping[int, object], name: Name) -> Iterator[str]:
    if owners:
        yield (
            f"Rows of {_listed(owners, name)} are there twice, alike in everything: a file of the "
            "trace has a copy under another name. Remove the copies and audit again."
        )


def _installed_twice(installs: Sequence[Row], name: Name) -> Iterator[str]:
    views = defaultdict[int, list[ViewKey]](list)
    for member, key in find_reinstalled(installs):
        views[member].append(key)
    for member, (first, *others) in list(views.items())[:INSTALLED_SHOWN]:
        number, by = first
        more = f" and {len(others)} others" if others else ""
        yield (
            f"{name(member)} installed view {number} of {name(by)}{more} more than once: two runs "
            "or two members wrote under one address. Its other violations may follow from that."
        )
    if len(views) > INSTALLED_SHOWN:
        yield f"So did {len(views) - INSTALLED_SHOWN} other members."


def _clocks(latencies: Latencies, skew_us: int, name: Name) -> Iterator[str]:
    offsets = clock_offsets(latencies)
    apart = {m: off for m, off in offsets.items() if abs(off) > max(skew_us, CLOCK_US)}
    if len(offsets) == 2 and apart:
        off = max(map(abs, offsets.values()))
        yield f"The clocks of {_listed(offsets, name)} are {_told(off)} apart. {_advice(off)}"
        return
    for member, off in apart.items():
        side = "ahead of" if off > 0 else "behind"
        yield (
            f"The clock of {name(member)} is {_told(off)} {side} those of the others. "
            f"{_advice(off)}"
        )
    if not apart and latencies and -min(latencies.values()) > skew_us:
        off = -min(latencies.values())
        yield f"Some clocks are at least {_told(off)} apart. {_advice(off)}"


def clock_offsets(latencies: Latencies) -> dict[int, float]:
    """How far each member's clock is ahead of those of most others, in microseconds.

    A message from b to a takes d + offset, one from a to b takes d - offset: half the difference
    is the offset. Of a pair with one direction only a negative latency tells something.
    """
    found = defaultdict[int, list[float]](list)
    for (member, sender), there in latencies.items():
        back = latencies.get((sender, member))
        if back is not None:
            found[member].append((there - back) / 2)
        else:
            found[member].append(min(there, 0))
            found[sender].append(-min(there, 0))
    return {member: median(offsets) for member, offsets in found.items()}


def _told(offset_us: float) -> str:
    offset = abs(offset_us) / 1e6
    return f"{offset / 3_600:.1f} hours" if offset >= 3_600 else seconds(offset)


def _advice(offset_us: float) -> str:
    needed = -(-abs(offset_us) * 1.1 // 1_000_000) or 1
    return f"Audit with --skew {needed:.0f} to allow for that; latencies are not to be trusted."


def _listed(members: Mapping[int, object], name: Name) -> str:
    return ", ".join(sorted(map(name, members)))
