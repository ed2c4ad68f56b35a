"""What in a group needs attention, as sentences that the live view shows first.

In a large group many members have the same trouble: they share a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypedDict, TypeVar

from ringcast.core.stack.counters import declared
from ringcast.runtime.live.rows import MemberRow

NAMES_MAX = 5
"""Names in a sentence; of further members it has the number."""

Kind = Literal["alone", "waits", "silent", "suspects", "apart", "drops"]
Key = TypeVar("Key", bound=Hashable)


class Trouble(TypedDict):
    """One sentence, and what it is about."""

    kind: Kind
    text: str


def troubles_of(rows: Sequence[MemberRow], group: str, watcher: str, view: int) -> list[Trouble]:
    """All that needs attention, the most urgent first.

    watcher: the name of the member that watches; view: the number of its view.
    """
    found: list[tuple[Kind, Iterable[str]]] = [
        ("alone", [alone_text(group)] if [row["name"] for row in rows] == [watcher] else []),
        ("waits", _waits(rows)),
        ("silent", _silent(rows)),
        ("suspects", _suspects(rows)),
        ("apart", _apart(rows, view)),
        ("drops", _drops(rows)),
    ]
    return [{"kind": kind, "text": text} for kind, texts in found for text in texts]


def alone_text(group: str) -> str:
    """What to check when a command that joins a group to look at it finds no other member."""
    return f"no other member of {group}: check the name and the stack's arguments"


def duration_text(seconds: float) -> str:
    """A time in the two largest units that it has."""
    if seconds < 60:
        return f"{seconds:.0f}s"
    for size, unit, part, part_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m")):
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            return f"{whole}{unit} {rest // part}{part_unit}"
    return f"{int(seconds) // 60}m {int(seconds) % 60}s"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: some of them, and the number of the others."""
    if len(names) <= NAMES_MAX:
        return ", ".join(names)
    return f"{', '.join(names[: NAMES_MAX - 1])} and {len(names) - NAMES_MAX + 1} more"


def _waits(rows: Sequence[MemberRow]) -> Iterator[str]:
    waiting = [row for row in rows if row["waits_for"] or row["blocked_by"]]
    waiting.sort(key=lambda row: -row["waits_seconds"])
    for (whom, reason), some in _by(
        waiting, lambda row: (tuple(row["waits_for"]), row["blocked_by"])
    ):
        who, longest = _names(some), some[0]["waits_seconds"]
        upto = _waited_text(longest) if len(some) == 1 else f"up to {_waited_text(longest)}"
        verb = "has" if len(some) == 1 else "have"
        if whom and not reason:
            yield f"{who} {verb} waited {upto} for {listed(whom)}"
        else:
            yield f"{who} {verb} waited {upto}: {reason}"


def _silent(rows: Sequence[MemberRow]) -> Iterator[str]:
    silent = [row for row in rows if row["silent_seconds"]]
    for some in ([row for row in silent if row["age"] >= 0], [r for r in silent if r["age"] < 0]):
        if not some:
            continue
        longest = _waited_text(max(row["silent_seconds"] for row in some))
        verb, upto = ("has", "") if len(some) == 1 else ("have", "up to ")
        if some[0]["age"] >= 0:
            yield f"{_names(some)} {verb} not answered for {upto}{longest}"
        else:
            yield f"{_names(some)} {verb} not answered yet, asked {upto}{longest} ago"


def _suspects(rows: Sequence[MemberRow]) -> Iterator[str]:
    suspecting = [row for row in rows if row["suspects"]]
    for whom, some in _by(suspecting, lambda row: tuple(row["suspects"])):
        yield f"{_names(some)} suspect{'s' if len(some) == 1 else ''} {listed(whom)}"


def _apart(rows: Sequence[MemberRow], view: int) -> Iterator[str]:
    answering = [row for row in rows if row["age"] >= 0 and not row["silent_seconds"]]
    elsewhere = [row for row in answering if row["view"] != view]
    for number, some in _by(elsewhere, lambda row: row["view"]):
        yield f"{_names(some)} {'is' if len(some) == 1 else 'are'} in view {number}, not {view}"


def _drops(rows: Sequence[MemberRow]) -> Iterator[str]:
    pairs = [(reason, row) for row in rows for reason in row["rising_drops"]]
    for reason in dict.fromkeys(reason for reason, _ in pairs):
        some = [row for other, row in pairs if other == reason]
        rate = sum(row["rising_drops"][reason] for row in some)
        verb = "drops" if len(some) == 1 else "drop"
        known = declared(f"dropped_{reason}")
        about = f" ({known.about[0].lower()}{known.about[1:].rstrip('.')})" if known else ""
        yield f"{_names(some)} {verb} {reason}: {rate:,.0f} per second{about}"


def _by(
    rows: Sequence[MemberRow], key: Callable[[MemberRow], Key]
) -> Iterator[tuple[Key, list[MemberRow]]]:
    """The rows with the same key together, in the order of the first of each."""
    groups: dict[Key, list[MemberRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    yield from groups.items()


def _names(rows: Sequence[MemberRow]) -> str:
    return listed([row["name"] for row in rows])


def _waited_text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else duration_text(seconds)
