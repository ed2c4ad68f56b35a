"""Reading rows: row groups that conditions rule out are not read."""

from pathlib import Path

from ringcast.journal import Journal, JournalWriter
from ringcast.journal.read.prune import Conditions
from ringcast.journal.read.rows import read_rows


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.append(1, 1, 7, 1, [b"x"] * 20, sent_at=1_000, delivered_at=2_000)
    (segment,) = Journal(tmp_path).segments

    def count(conditions: Conditions | None) -> int:
        batches = read_rows(tmp_path, segment.name, None, ["payload"], conditions)
        return sum(batch.num_rows for batch in batches)

    assert count(None) == count(Conditions()) == 20
    assert count(Conditions().within("sent_at", (1_000, 1_000))) == 20
    for column, bounds in {"sent_at": (1_001, 9_999), "delivered_at": (0, 1_999)}.items():
        assert count(Conditions().within(column, bounds)) == 0
    assert count(Conditions().among("recorder", [1])) == 20
    assert count(Conditions().among("recorder", [2])) == 0
