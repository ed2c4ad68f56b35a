"""Checking view by view finds what a check of everything finds, and leaves nothing behind."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringcast.soak.inspector import Inspector
from ringcast.trace.check import check
from ringcast.trace.rules import Rules
from ringcast.trace.schema import Row
from ringcast.trace.table import write_rows
from ringcast.trace.violations import Violation
from tests.unit.trace.histories import good_history
from tests.unit.trace.spoils import SPOILS, spoil


def files_of(rows: list[Row], rng: random.Random) -> Iterator[tuple[str, list[Row]]]:
    """The files that members write, by time: each has a few rows of one member, in their order."""
    by_member: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_member[row.member].append(row)
    files: list[tuple[int, str, list[Row]]] = []
    for member, own in by_member.items():
        own.sort(key=lambda row: (row.at, row.view, row.kind != "view"))
        begin = 0
        while part := own[begin : begin + rng.randint(1, 40)]:
            files.append((part[-1].at, f"{member:016x}-{begin:06d}.parquet", part))
            begin += len(part)
    for _, name, part in sorted(files, key=lambda file: file[:2]):
        yield name, part


def inspect(rows: list[Row], place: Path, seed: int) -> tuple[Inspector, list[Violation]]:
    """Read files as they come, then say that everybody has ended."""
    place.mkdir()
    inspector, found = Inspector(place, Rules()), list[Violation]()
    names = {name for row in rows for name in row.names or ()}
    for name, part in files_of(rows, random.Random(seed)):
        write_rows(place / name, part)
        found = found or inspector.look()
    for name in names:
        inspector.ended(name)
    return inspector, found or inspector.look()


@pytest.mark.parametrize("seed", range(12))
def test_a_good_history_is_clean_and_is_swept(seed: int, tmp_path: Path) -> None:
    rows = good_history(seed)
    inspector, found = inspect(rows, tmp_path / "trace", seed)
    assert found == []
    assert inspector.left == 0
    assert inspector.views == len({(row.view, row.view_by) for row in rows})
    assert inspector.deliveries == sum(row.count for row in rows if row.kind == "delivered")
    assert list((tmp_path / "trace").iterdir()) == []


@pytest.mark.parametrize("name", sorted(SPOILS))
def test_whatever_is_broken_is_found_and_its_files_stay(name: str, tmp_path: Path) -> None:
    tried = 0
    for seed in range(40):
        spoilt = spoil(good_history(seed), random.Random(seed), name)
        if spoilt is None or not check(spoilt.rows):
            continue
        tried += 1
        place = tmp_path / str(seed)
        _, found = inspect(spoilt.rows, place, seed)
        assert found, f"{name} in history {seed}"
        assert list(place.iterdir()), "what shows it is still there"
        if tried == 3:
            return
    assert tried, "no history has a place for this"


def test_a_view_that_is_not_over_is_not_judged(tmp_path: Path) -> None:
    """Rows that are still to come are not missed."""
    rows = [row for row in good_history(3, views=1) if row.kind != "closed"]
    half = rows[: len(rows) // 2]
    inspector = Inspector(tmp_path, Rules())
    for name, part in files_of(half, random.Random(1)):
        write_rows(tmp_path / name, part)
        assert inspector.look() == []
    assert inspector.left == 1
    assert inspector.views == 0
