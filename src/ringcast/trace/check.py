"""Checks the guarantees over a whole history in plain Python: the simulator does it after a run.

Nothing but rows goes in, in any order, and what comes out does not depend on how members cut
their runs. The guarantees are those of strict view synchrony:

- a message is sent in the view that its sender has installed, and delivered there or nowhere;
- within a view, a sender's messages are delivered once, in order, from its first one on;
- members that go together from a view to the next have delivered the same in it;
- a sender forgets a message only when every member of the view has delivered it;
- where the stack promises one order, members that go together from a view to the next have
  delivered the messages of all senders in it in the same order;
- where the stack asks for a majority, each view that one agrees on has a majority of the one before
  it, and messages are sent in no other views.

The first two are checked group by group in `walk`, the others across members in `judge`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from ringcast.trace.judging.history import History, reach_of
from ringcast.trace.judging.judge import judge
from ringcast.trace.judging.summary import Group
from ringcast.trace.rules import Rules, window_bound
from ringcast.trace.schema import DELIVERED, SKIPPED, Row
from ringcast.trace.violations import Violation


def check(
    rows: Iterable[Row],
    *,
    capacity: int | None = None,
    skips: bool = True,
    skew_us: int = 0,
    waits: bool = True,
    agrees: bool = True,
    ordered: bool = False,
    majority: bool = False,
) -> list[Violation]:
    """List how the guarantees were broken; [] is good.

    What is owed depends on the stack: `ringcast.trace.rules` explains the arguments, and makes them
    from a spec. Costs a sort of the rows.
    """
    rules = Rules(capacity, skips, skew_us, waits, agrees, ordered, majority)
    return check_history(History(rows), rules)


def check_history(history: History, rules: Rules) -> list[Violation]:
    """The same for rows that are sorted already."""
    found = [
        *history.violations,
        *judge(history.summary),
        *_early_purges(history, rules.skew_us),
        *_windows(history, rules.capacity),
        *_skips(history, rules.skips),
        *_before_sent(history, rules.skew_us),
    ]
    return sorted((v for v in found if not rules.excuses(v.cause)), key=lambda v: v.order)


def _before_sent(history: History, skew_us: int) -> Iterator[Violation]:
    """Deliveries of others' messages before these were sent, by the clocks of the two."""
    for (member, view, sender), rows in history.deliveries.items():
        early = [
            row
            for row in rows
            if row.kind == DELIVERED and row.sent_at is not None and row.at + skew_us < row.sent_at
        ]
        if early and member != sender:
            yield Violation("before-sent", member, *view, sender, None, *reach_of(early))


def _early_purges(history: History, skew_us: int) -> Iterator[Violation]:
    """Deliveries after their sender forgot the message."""
    summary = history.summary
    for (view, sender), purges in history.purges.items():
        theirs, begin = summary.progress.get((sender, view)), summary.begins.get((view, sender))
        forgotten = _Forgotten(purges)
        for member in theirs.members if theirs and begin is not None else ():
            early = [
                row
                for row in history.deliveries.get((member, view, sender), ())
                if row.kind != SKIPPED
                and (row.seqno or 0) >= (begin or 0)
                and row.at > forgotten.at(row.seqno or 0) + skew_us
            ]
            if early:
                reach = reach_of(early)
                yield Violation("purged-before", sender, *view, sender, member, *reach)


class _Forgotten:
    """When each message was forgotten: a purge up to `low` forgets all before it as well."""

    def __init__(self, purges: list[Row]) -> None:
        marks = sorted(((row.low or 0, row.at) for row in purges), reverse=True)
        earliest = accumulate((at for _, at in marks), min)
        self._lows = [low for low, _ in reversed(marks)]
        self._times = list(earliest)[::-1]

    def at(self, seqno: int) -> float:
        """The time of the first purge that covers a message; infinity if none does."""
        place = bisect_left(self._lows, seqno)
        return self._times[place] if place < len(self._times) else math.inf


class _Marks(NamedTuple):
    at: int
    low: int
    delivered: int
    high: int


def _windows(history: History, capacity: int | None) -> Iterator[Violation]:
    """The first sample with marks out of order and the fullest one, of each window."""
    windows = defaultdict[Group, list[_Marks]](list)
    for row in history.samples:
        marks = _Marks(row.at, row.low or 0, row.delivered or 0, row.high or 0)
        windows[row.member, (row.view, row.view_by), row.sender or 0].append(marks)
    for (member, view, sender), samples in windows.items():
        wrong = min((m for m in samples if not m.low <= m.delivered <= m.high), default=None)
        if wrong:
            yield Violation("marks", member, *view, sender, None, wrong.low + 1, wrong.high)
        full = min(samples, key=lambda m: (m.low - m.high, m.at, m.low))
        if capacity is not None and full.high - full.low > window_bound(capacity, member, sender):
            yield Violation("capacity", member, *view, sender, None, full.low + 1, full.high)


def _skips(history: History, allowed: bool) -> Iterator[Violation]:
    for (member, view, sender), rows in history.deliveries.items():
        skipped = [row for row in rows if row.kind == SKIPPED]
        if skipped and (not allowed or member == sender):
            cause = "skip-own" if allowed else "skip-forbidden"
            yield Violation(cause, member, *view, sender, None, *reach_of(skipped))
