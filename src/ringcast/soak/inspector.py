"""Checks the guarantees while members still write: view by view, as soon as a view is over.

A view is over when each of its members has gone on to a later one, or has ended. Then the rows of
it are complete, are checked like those of any audit, and are forgotten, as are the files with
nothing else in them. So neither memory nor disk grows with the time that a group is watched; and
when a guarantee is broken, the files that show it are still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ringcast.core.model.ranges import RangeSet
from ringcast.trace import schema
from ringcast.trace.check import check
from ringcast.trace.judging.history import reach_of
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.rules import Rules
from ringcast.trace.schema import DELIVERED, SENT, VIEW, Row
from ringcast.trace.table import read_file
from ringcast.trace.violations import Violation

NEEDED = {
    *(schema.CLOSED, DELIVERED, schema.PURGED, SENT, schema.SKIPPED, schema.WINDOW, schema.ACKED),
}
"""The kinds that the checks look at, beside views."""

CAUSES = {SENT: "numbered-again", DELIVERED: "repeated-later"}
"""What it is called when numbers of one view come again in another."""


class Inspector:
    """Reads the traces in a directory as they grow."""

    def __init__(self, directory: Path, rules: Rules, *, keep: bool = False) -> None:
        """keep: files stay when all in them is checked."""
        self.views = 0
        """How many were checked."""
        self.deliveries = 0
        """How many messages were delivered in them, each counted at each member."""
        self._directory, self._rules, self._keep = directory, rules, keep
        self._files: dict[Path, set[ViewKey]] = {}
        """Files that were read, and the views in them that are not checked yet."""
        self._rows: dict[ViewKey, list[Row]] = defaultdict(list)
        self._installs: dict[int, list[Row]] = defaultdict(list)
        """Member → the views that it installed, from the first that is not checked yet."""
        self._numbers = defaultdict[tuple[int, str, int], RangeSet](RangeSet)
        """Member, what it did, whose messages → their numbers in the views that are checked.

        Numbers go on from view to view: this is a range or two however many views there were."""
        self._names: dict[int, str] = {}
        self._ended: set[str] = set()

    def ended(self, name: str) -> None:
        """The process of this member has ended, in whatever way: it writes nothing more."""
        self._ended.add(name)

    def look(self) -> list[Violation]:
        """Read what is new and check what is over; [] is good."""
        for file in sorted(self._directory.glob("*.parquet")):
            if file not in self._files:
                self._read(file)
        found: list[Violation] = []
        for view in sorted(self._open_views):
            if self._is_over(view):
                found.extend(self._check(view))
        if not found:
            self._sweep()
        return found

    @property
    def left(self) -> int:
        """How many views are not checked yet."""
        return len(self._open_views)

    # ----------------------------------------------------------------------------------------------

    def _read(self, file: Path) -> None:
        views = self._files[file] = set()
        for row in read_file(file):
            view = row.view, row.view_by
            if row.kind == VIEW:
                self._installs[row.member].append(row)
                self._names.update(zip(row.members or (), row.names or (), strict=False))
                views.add(view)
            elif row.kind in NEEDED:
                self._rows[view].append(row)
                views.add(view)

    @property
    def _open_views(self) -> set[ViewKey]:
        """The views that are not checked yet."""
        return set().union(*self._files.values())

    def _is_over(self, view: ViewKey) -> bool:
        members = self._members(view)
        return bool(members) and all(self._has_left(member, view) for member in members)

    def _members(self, view: ViewKey) -> tuple[int, ...]:
        """The members of a view, as any of them recorded it."""
        for rows in self._installs.values():
            for row in rows:
                if (row.view, row.view_by) == view:
                    return row.members or ()
        return ()

    def _has_left(self, member: int, view: ViewKey) -> bool:
        later = any(row.view > view[0] for row in self._installs.get(member, ()))
        return later or self._names.get(member) in self._ended

    def _check(self, view: ViewKey) -> list[Violation]:
        rows = self._rows.pop(view, [])
        self.views += 1
        self.deliveries += sum(row.count for row in rows if row.kind == DELIVERED)
        found = check([*rows, *self._passages(view)], **self._rules._asdict())
        found = found or list(self._repeats(view, rows))
        if not found:
            for views in self._files.values():
                views.discard(view)
        return found

    def _repeats(self, view: ViewKey, rows: list[Row]) -> Iterator[Violation]:
        """Numbers that were used or delivered in another view already."""
        groups = defaultdict[tuple[int, str, int], list[Row]](list)
        for row in rows:
            if row.kind in CAUSES:
                groups[row.member, row.kind, row.sender or 0].append(row)
        for group, own in groups.items():
            reach = reach_of(own)
            if self._numbers[group].add(*reach) <= reach.last - reach.first:
                member, kind, sender = group
                yield Violation(CAUSES[kind], member, *view, sender, None, *reach)

    def _passages(self, view: ViewKey) -> Iterable[Row]:
        """Who was in a view, and where each went from there."""
        for rows in self._installs.values():
            places = [place for place, row in enumerate(rows) if (row.view, row.view_by) == view]
            if places:
                yield from rows[places[0] : places[0] + 2]

    def _sweep(self) -> None:
        """Forget what is done with."""
        done = [file for file, views in self._files.items() if not views]
        for file in done if not self._keep else ():
            file.unlink(missing_ok=True)
            del self._files[file]
        still_open = self._open_views
        for member, rows in list(self._installs.items()):
            kept = [p for p, row in enumerate(rows) if (row.view, row.view_by) in still_open]
            # The last one stays in any case: it says where the member is.
            self._installs[member] = rows[min([*kept, len(rows) - 1]) :]
            if self._names.get(member) in self._ended and not kept:
                del self._installs[member]
                for group in [group for group in self._numbers if group[0] == member]:
                    del self._numbers[group]
