"""Reading rows: row groups that conditions rule out are not read."""

from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from ringcast.journal import Journal, JournalError, JournalWriter
from ringcast.journal.format.layout import Layout
from ringcast.journal.read.prune import NUMBERS, Conditions
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


def read_with_every_byte_of_the_footer_changed(root: Path, name: str) -> None:
    conditions = Conditions()
    for column in NUMBERS:
        conditions = conditions.within(column, (0, 9_999))
    path = Layout(root).segment(name)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for place in range(len(whole) - 8 - footer, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([0xFF * (place % 2)]) + whole[place + 1 :])
        with suppress(JournalError):
            list(read_rows(root, name, None, ["payload"], conditions))


def test_no_footer_ends_the_process_or_is_refused_without_a_sentence(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        writer.append(1, 1, 7, 1, [b"x"] * 20, sent_at=1_000, delivered_at=2_000)
    (segment,) = Journal(tmp_path).segments
    reader = get_context("spawn").Process(
        target=read_with_every_byte_of_the_footer_changed, args=(tmp_path, segment.name)
    )
    reader.start()
    reader.join()
    assert reader.exitcode == 0
