"""The journal as a stream: each message once, whatever seals it, and when, in bounded batches."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.journal import DataLost, Journal, JournalError, JournalWriter
from ringcast.journal.format.layout import Layout, stem_of
from ringcast.journal.format.spans import Spans
from ringcast.journal.read import stream
from ringcast.journal.read.rows import read_slice, seqnos
from ringcast.journal.read.stream import JournalStream, Offset, decode, encode
from ringcast.journal.write.retention import remove
from tests.unit.journal.support import FakeClock, FaultyFiles, Row, append, expected, rows


class Query:
    """What Spark does with a stream: asks for offsets, plans, reads, commits."""

    def __init__(self, directory: Path, *, fail_on_loss: bool = True) -> None:
        self._directory = directory
        self._fail = fail_on_loss
        self.offset: Offset = {}
        self.batches: list[list[Row]] = []
        self.restart()
        self.offset = self.stream.initial()

    @property
    def rows(self) -> list[Row]:
        return sorted(row for batch in self.batches for row in batch)

    def restart(self) -> None:
        """A new process, that has nothing but the checkpoint."""
        self.offset = json.loads(json.dumps(self.offset))
        self.stream = JournalStream(Journal(self._directory), self._find, fail_on_loss=self._fail)

    def step(self, limit: int | None = None) -> bool:
        """One batch; whether there was one."""
        end = self.stream.latest(self.offset, limit)
        if json.dumps(end) == json.dumps(self.offset):
            return False
        slices = self.stream.plan(self.offset, end)
        self.batches.append(
            [row for part in slices for row in rows(read_slice(self._directory, part))]
        )
        self.offset = end
        return True

    def _find(self, name: str, sender: int, spans: Spans) -> list[int]:
        return seqnos(self._directory, name, sender, spans)


def test_it_follows_the_writer(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        query = Query(tmp_path)
        assert not query.step()
        append(writer, 7, 1, 3)
        writer.seal()
        assert query.step()
        append(writer, 7, 4, 6)
        append(writer, 8, 1, 1)
        writer.seal()
        assert query.step()
        assert not query.step()
    assert query.batches == [expected(7, 1, 3), expected(7, 4, 6) + expected(8, 1, 1)]
    assert query.offset == {"prices": {"7": 6, "8": 1}}


def test_the_slower_recorder_fills_a_hole_later(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one, JournalWriter(tmp_path, "prices", 2) as other:
        append(one, 7, 1, 50)
        one.seal()
        append(one, 7, 81, 90, view=3)
        one.seal()
        query = Query(tmp_path)
        query.step()
        assert query.offset == {"prices": {"7": "1-50,81-90"}}
        append(other, 7, 1, 80)
        other.seal()
        query.step()
        assert query.offset == {"prices": {"7": 90}}
    assert query.batches == [expected(7, 1, 50) + expected(7, 81, 90), expected(7, 51, 80)]


def test_a_limit_is_kept_and_is_fair(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 100)
        append(writer, 8, 1, 4)
        append(writer, 9, 11, 14)
    query = Query(tmp_path)
    while query.step(12):
        assert len(query.batches[-1]) <= 12
    assert query.batches[0] == expected(7, 1, 4) + expected(8, 1, 4) + expected(9, 11, 14)
    assert query.rows == sorted(expected(7, 1, 100) + expected(8, 1, 4) + expected(9, 11, 14))
    assert len(query.batches) == 9


def test_a_limit_counts_rows_where_seqnos_are_sparse(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        for last_fragment in range(100, 1001, 100):
            append(writer, 7, last_fragment, last_fragment)
    query = Query(tmp_path)
    while query.step(4):
        pass
    assert [len(batch) for batch in query.batches] == [4, 4, 2]


def test_frozen_it_reads_what_there_was(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        append(writer, 7, 1, 6)
        writer.seal()
        query = Query(tmp_path)
        query.stream.freeze()
        append(writer, 7, 7, 9)
        append(writer, 8, 1, 1)
        writer.seal()
        while query.step(4):
            pass
        assert [len(batch) for batch in query.batches] == [4, 2]
        assert query.rows == expected(7, 1, 6)
        query.restart()
        query.step()
        assert query.rows == expected(7, 1, 9) + expected(8, 1, 1)


def test_the_same_offsets_give_the_same_rows_again(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one, JournalWriter(tmp_path, "prices", 2) as other:
        append(one, 7, 1, 10)
        one.seal()
        query = Query(tmp_path)
        end = query.stream.latest({}, 6)
        first = query.stream.plan({}, end)
        append(other, 7, 1, 20)
        other.seal()
        query.restart()
        assert query.stream.plan({}, end) == first


def lose(directory: Path, number: int) -> None:
    """Retention takes the oldest segments."""
    gone = list(Journal(directory).segments[:number])
    remove(FaultyFiles(), Layout(directory), stem_of("prices", 1), gone)


def test_what_was_gone_before_the_query_began_is_no_loss(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        for seqno in range(1, 5):
            append(writer, 7, seqno, seqno)
            writer.seal()
        lose(tmp_path, 2)
        query = Query(tmp_path)
        query.step()
        assert query.rows == expected(7, 3, 4)
        assert query.offset == {"prices": {"7": 4}}


@pytest.mark.parametrize("fail", [True, False])
def test_what_was_removed_unread_is_an_error_unless_asked_for(tmp_path: Path, fail: bool) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        query = Query(tmp_path, fail_on_loss=fail)
        for seqno in range(1, 5):
            append(writer, 7, seqno, seqno)
            append(writer, 10 + seqno, 1, 1)
            writer.seal()
        lose(tmp_path, 2)
        if fail:
            with pytest.raises(
                DataLost, match=r"messages of 3 sender.*set failOnDataLoss to false"
            ):
                query.step()
        else:
            query.step()
            assert query.rows == expected(7, 3, 4) + expected(13, 1, 1) + expected(14, 1, 1)
            assert query.offset["prices"]["7"] == 4  # What is lost will not be looked for again.
            assert not query.step()


@pytest.mark.parametrize("fail", [True, False])
def test_what_was_removed_in_the_middle_of_a_batch_is_a_loss(tmp_path: Path, fail: bool) -> None:
    with JournalWriter(tmp_path, "prices", 1) as writer:
        for seqno in range(1, 4):
            append(writer, 7, seqno, seqno)
            writer.seal()
        query = Query(tmp_path, fail_on_loss=fail)
        end = query.stream.latest(query.offset, None)
        lose(tmp_path, 1)
        if fail:
            with pytest.raises(DataLost, match="1-1 of sender 7"):
                query.stream.plan(query.offset, end)
        else:
            assert len(query.stream.plan(query.offset, end)) == 2


def test_what_one_recorder_removed_another_may_still_have(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "prices", 1) as one, JournalWriter(tmp_path, "prices", 2) as other:
        append(one, 7, 1, 5)
        one.seal()
        append(other, 7, 1, 5)
        other.seal()
        query = Query(tmp_path)
        lose(tmp_path, 1)
        query.step()
        assert query.rows == expected(7, 1, 5)


def test_offsets_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SPANS_MAX", 3)
    monkeypatch.setattr(stream, "SENDERS_MAX", 1)
    with JournalWriter(tmp_path, "prices", 1) as writer:
        query = Query(tmp_path)
        query.offset = {"gone": {"5": 1}}
        for view in range(1, 7):
            append(writer, 7, 10 * view, 10 * view, view=view)
            writer.seal()
            query.step()
    assert query.offset == {"prices": {"7": "10-40,50-50,60-60"}}
    assert [row[2] for row in query.rows] == [10, 20, 30, 40, 50, 60]


def test_offsets_are_json_in_one_order() -> None:
    cover: dict[tuple[str, int], Spans] = {
        ("b", -7): ((1, 9),),
        ("a", 3): ((2, 4), (6, 6)),
        ("a", 1): (),
    }
    assert json.dumps(encode(cover)) == '{"a": {"3": "2-4,6-6"}, "b": {"-7": 9}}'
    assert decode(encode(cover)) == {("b", -7): ((1, 9),), ("a", 3): ((2, 4), (6, 6))}


@pytest.mark.parametrize("text", ['{"a": 3}', '{"a": {"x": 1}}', '{"a": {"1": "one"}}'])
def test_a_foreign_offset_is_told(text: str) -> None:
    with pytest.raises(JournalError, match="checkpoint of its own"):
        decode(json.loads(text))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["deliver", "skip", "view", "seal", "read", "restart", "replace"]),
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(1, 6),
    ),
    max_size=40,
)


class Recording:
    """Two recorders of one group, each with its own way through the same messages."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clock = FakeClock()
        self._names = iter(range(1, 1000))
        self.view = 1
        self.writers = [self._new(), self._new()]
        self.reached: list[dict[int, int]] = [{}, {}]
        self.known: set[tuple[int, int]] = set()

    def deliver(self, index: int, sender: int, number: int) -> None:
        first = self.reached[index].get(sender, 0) + 1
        self.reached[index][sender] = first + number - 1
        for seqno in range(first, first + number):
            if seqno % 4:  # The fourth is a fragment, and the next the message that it is of.
                append(self.writers[index], sender, seqno, seqno, view=self.view)
                self.known.add((sender, seqno))

    def skip(self, index: int, sender: int, number: int) -> None:
        first = self.reached[index].get(sender, 0) + 1
        self.writers[index].skip(self.view, 1, sender, first, first + number - 1)
        self.reached[index][sender] = first + number - 1

    def miss(self, index: int, sender: int, number: int) -> None:
        """A new view: the other recorder was not in it for a while."""
        self.view += 1
        self.reached[index][sender] = self.reached[index].get(sender, 0) + number

    def replace(self, index: int) -> None:
        self.writers[index].close()
        self.writers[index] = self._new()

    def close(self) -> None:
        for writer in self.writers:
            writer.close()

    def _new(self) -> JournalWriter:
        name = next(self._names)
        return JournalWriter(
            self._directory, "prices", name, files=FaultyFiles(), now=self._clock, roll_bytes=400
        )


@given(STEPS)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_each_message_once_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    recording = Recording(directory)
    query = Query(directory)
    for what, index, sender, number in steps:
        match what:
            case "deliver":
                recording.deliver(index, sender, number)
            case "skip":
                recording.skip(index, sender, number)
            case "view":
                recording.miss(index, sender, number)
            case "seal":
                recording.writers[index].seal()
            case "replace":
                recording.replace(index)
            case "restart":
                query.restart()
            case "read":
                if query.step(number):
                    assert len(query.batches[-1]) <= number
    recording.close()
    while query.step(5):
        assert len(query.batches[-1]) <= 5
    assert query.rows == sorted(
        row for sender, seqno in recording.known for row in expected(sender, seqno, seqno)
    )
    assert query.rows == sorted(rows(Journal(directory).read()))
