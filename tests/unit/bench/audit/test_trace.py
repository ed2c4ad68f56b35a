"""The traces that benchmarks audit are good ones, whatever their shape."""

from pathlib import Path

import pytest

from ringcast.trace.check import check
from ringcast.trace.schema import DELIVERED
from ringcast.trace.table import read_file
from ringcast_bench.audit.trace import generate


@pytest.mark.parametrize(
    ("rows", "run", "members", "files"),
    [(500, 1, 5, 0), (500, 3, 5, 0), (100, 1, 10, 0), (90, 1, 3, 9)],
)
def test_a_made_up_trace_is_clean(
    rows: int, run: int, members: int, files: int, tmp_path: Path
) -> None:
    assert generate(tmp_path, rows, run, members, files) == rows
    found = sorted(tmp_path.iterdir())
    assert len(found) == max(files, members)
    history = [row for file in found for row in read_file(file)]
    assert sum(row.kind == DELIVERED for row in history) == rows
    assert check(history) == []
