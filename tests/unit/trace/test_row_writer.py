"""A trace has what was delivered, also where that breaks a guarantee."""

from pathlib import Path

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.view import View, ViewId
from ringcast.trace.check import check
from ringcast.trace.row_writer import RowWriter
from ringcast.trace.schema import Row
from ringcast.trace.table import read_file
from ringcast.trace.writer import TraceWriter

ME, OTHER = Address(1), Address(2)


def run_of(first: int, count: int) -> Batch:
    return Batch(OTHER, [b"x"] * count, count, first=first, sent_at=10, size=1)


def written(place: Path, runs: list[Batch]) -> list[Row]:
    """The traces of a member that took these runs, and of one that sent ten messages."""
    view = View(ViewId(1, ME), (Peer(ME, "me", "a:1"), Peer(OTHER, "other", "a:2")))
    receiver = RowWriter(TraceWriter(place, ME), digests=True)
    receiver.view(view, at=1)
    for run in runs:
        receiver.taken(run, at=20)
    receiver.close(30, in_order=True, has_all=True)
    sender = RowWriter(TraceWriter(place, OTHER), digests=True)
    sender.view(view, at=1)
    sender.sent(run_of(1, 10), run_of(1, 10).payloads)
    sender.delivered(run_of(1, 10), at=10)
    sender.close(30, in_order=True, has_all=True)
    return [row for file in sorted(place.glob("*.parquet")) for row in read_file(file)]


@pytest.mark.parametrize(
    ("ranges", "guarantees"),
    [
        ([(1, 10)], set()),
        ([(1, 4), (5, 6)], set()),
        ([(1, 4), (7, 4)], {"gap"}),
        ([(1, 4), (3, 2), (5, 6)], {"duplicate"}),
        ([(1, 10), (1, 10)], {"duplicate"}),
        ([(1, 9)], {"missing-tail"}),
    ],
)
def test_what_was_delivered_is_written_as_it_was(
    ranges: list[tuple[int, int]], guarantees: set[str], tmp_path: Path
) -> None:
    rows = written(tmp_path, [run_of(*one) for one in ranges])
    assert {violation.guarantee for violation in check(rows)} == guarantees
