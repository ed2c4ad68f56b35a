"""Walks the rows of one member, view and sender, and says what is wrong with them.

The rows tell two stories: the numbers of the messages, and `pos`, the member's own count. A
message that was never delivered leaves a hole in the numbers and none in the count; a row that
was lost from the trace leaves the same hole in both. So the walk is done twice, in the order of
the count and in that of the numbers, and a hole in the numbers is forgiven where the count has it
as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringcast.trace.judging.summary import Range
from ringcast.trace.schema import Row


class WalkFinding(NamedTuple):
    """A cause, and the messages it is about."""

    cause: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """A row with what the walks need of it."""

    seqno: int
    last: int
    pos: int
    end: int
    """The position after the run."""
    row: Row

    @classmethod
    def of(cls, row: Row) -> PlacedRun:
        seqno, pos = row.seqno or 0, row.pos or 0
        return cls(seqno, seqno + row.count - 1, pos, pos + row.count, row)


def walk_deliveries(
    rows: Sequence[Row], own: Range | None, others: Sequence[Range], complete: bool
) -> tuple[list[WalkFinding], Range | None]:
    """Find what is wrong with the deliveries of a group, and from where to where they reach.

    Rows that the count shows to be lost are part of what they reach; those of other views aren't.
    `own` is what the sender sent in this view, `others` what it sent in others; `complete` says
    that its rows of this view are all there.
    """
    runs = [PlacedRun.of(row) for row in rows]
    foreign = {id(run) for run in runs if not _within(run, own) and _in_any(run, others)}
    kept = [run for run in runs if id(run) not in foreign]
    lost = _lost(runs, foreign)
    findings = _merged("other-view", [Range(r.seqno, r.last) for r in runs if id(r) in foreign])
    if complete:
        findings += _merged("unsent", [part for run in kept for part in _outside(run, own)])
    findings += [
        WalkFinding("unrecorded", run.seqno - lost[id(run)], run.seqno - 1)
        for run in kept
        if lost[id(run)] > 0
    ]
    repeated = set[int]()
    findings += _by_number(kept, lost, repeated)
    findings += _by_count(kept, repeated)
    if not kept:
        return findings, None
    first = min(run.seqno - lost[id(run)] for run in kept)
    return findings, Range(first, max(run.last for run in kept))


def walk_sendings(rows: Sequence[Row]) -> list[WalkFinding]:
    """Find holes and repetitions in the numbers that a sender gave out in one view."""
    findings = []
    reached: int | None = None
    for run in sorted((PlacedRun.of(row) for row in rows), key=lambda run: (run.seqno, run.last)):
        if reached is not None and run.seqno > reached + 1:
            findings.append(WalkFinding("unrecorded-sending", reached + 1, run.seqno - 1))
        if reached is not None and run.seqno <= reached:
            findings.append(WalkFinding("numbered-twice", run.seqno, min(run.last, reached)))
        reached = run.last if reached is None else max(reached, run.last)
    return findings


def _lost(runs: Sequence[PlacedRun], foreign: set[int]) -> dict[int, int]:
    """How many deliveries before each run were counted and have no row."""
    lost = {}
    reached = 0
    for run in sorted(runs, key=_count_order):
        lost[id(run)] = 0 if id(run) in foreign else max(0, run.pos - reached)
        reached = max(reached, run.end)
    return lost


def _by_number(
    kept: Sequence[PlacedRun], lost: dict[int, int], repeated: set[int]
) -> Iterator[WalkFinding]:
    """Gaps and repetitions; notes in `repeated` the runs that arrived a second time."""
    reached: int | None = None
    for run in sorted(kept, key=_number_order):
        if reached is not None and run.seqno - reached - 1 > lost[id(run)]:
            yield WalkFinding("gap", reached + 1, run.seqno - 1)
        if reached is not None and run.seqno <= reached:
            repeated.add(id(run))
            yield WalkFinding("repeated", run.seqno, min(run.last, reached))
        reached = run.last if reached is None else max(reached, run.last)


def _by_count(kept: Sequence[PlacedRun], repeated: set[int]) -> Iterator[WalkFinding]:
    """Runs that arrived behind later ones, or share a position with another."""
    before: PlacedRun | None = None
    reached = 0
    for run in sorted(kept, key=_count_order):
        late = before is not None and run.seqno < before.seqno
        if id(run) not in repeated and (late or run.pos < reached):
            yield WalkFinding("late" if late else "misplaced", run.seqno, run.last)
        before, reached = run, max(reached, run.end)


def _count_order(run: PlacedRun) -> tuple[int, int, int, int]:
    return run.pos, run.seqno, run.last, run.row.at


def _number_order(run: PlacedRun) -> tuple[int, int, int, int]:
    return run.seqno, run.pos, run.last, run.row.at


def _within(run: PlacedRun, own: Range | None) -> bool:
    return own is not None and own.first <= run.seqno <= own.last


def _in_any(run: PlacedRun, others: Sequence[Range]) -> bool:
    return any(_within(run, other) for other in others)


def _outside(run: PlacedRun, own: Range | None) -> Iterator[Range]:
    """The part of a run that its sender did not send in this view."""
    if own is None:
        yield Range(run.seqno, run.last)
    elif run.seqno < own.first or run.last > own.last:
        first = run.seqno if run.seqno < own.first else max(run.seqno, own.last + 1)
        yield Range(first, run.last if run.last > own.last else min(run.last, own.first - 1))


def _merged(cause: str, parts: Sequence[Range]) -> list[WalkFinding]:
    """One finding over all parts: they have one reason."""
    if not parts:
        return []
    return [WalkFinding(cause, min(p.first for p in parts), max(p.last for p in parts))]
