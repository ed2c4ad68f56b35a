"""A table of groups on the driver, as Arrow, that gives out the lines of one sender at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame


class SenderTable:
    """The result of a query with the columns `sender`, `member` and `problem`.

    Arrow takes about 130 bytes a line, and Python objects would take ten times that.
    """

    def __init__(self, table: DataFrame) -> None:
        lines = table.toArrow()
        problems = lines.column("problem")
        self.unsound: list[dict[str, Any]] = []
        """The lines of rows that can't be used."""
        if problems.null_count < len(lines):
            sound = pc.is_null(problems)
            self.unsound = lines.filter(pc.invert(sound)).to_pylist()
            lines = lines.filter(sound)
        # The lines of all chunks are copied once, in order; what they are copied from is let go.
        order = pc.sort_indices(lines.column("sender"))
        self._lines = lines.drop_columns(["problem"]).take(order)
        del lines, problems, order
        pa.default_memory_pool().release_unused()
        sorted_senders = self._lines.column("sender").combine_chunks()
        runs = pc.run_end_encode(sorted_senders)  # type: ignore[attr-defined]  # not in the stubs
        self._places: dict[int, tuple[int, int]] = {}
        start = 0
        for sender, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            self._places[sender] = start, end - start
            start = end

    @property
    def senders(self) -> list[int]:
        """All senders, in order."""
        return list(self._places)

    def of(self, sender: int) -> list[dict[str, Any]]:
        """The lines of one sender."""
        return self._lines.slice(*self._places.get(sender, (0, 0))).to_pylist()
