"""The journals that benchmarks read: whole, and with two recorders that overlap."""

from pathlib import Path

import pytest

from ringcast.journal import Journal
from ringcast_bench.journal.reading import RUN, SENDERS, write


@pytest.mark.parametrize(("recorders", "recorded"), [(1, 5_120), (2, 7_680)])
def test_each_message_is_there_once(recorders: int, recorded: int, tmp_path: Path) -> None:
    written = write(tmp_path, 20 * SENDERS * RUN, recorders)
    journal = Journal(tmp_path)
    assert written == 5_120 == sum(batch.num_rows for batch in journal.read())
    assert sum(segment.rows for segment in journal.segments) == recorded
    assert len({segment.recorder for segment in journal.segments}) == recorders
    assert journal.holes() == {}
