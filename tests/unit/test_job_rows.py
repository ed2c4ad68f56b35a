"""Rows with places: whatever is sent again, a receiver's application sees each row once."""

import logging
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringcast
from ringcast import job_rows as feed
from ringcast.job_rows import MAGIC, Row, RowDeduplicator, Stamp

QUERY, OTHER = UUID(int=1), UUID(int=2)


def attempt(
    values: Sequence[bytes], query: UUID = QUERY, epoch: int = 0, partition: int = 0
) -> list[bytes]:
    """The messages of an attempt that sends all rows of a partition."""
    return Stamp(query, epoch, partition).messages(values)


def taken(receiver: RowDeduplicator, messages: Sequence[bytes | memoryview]) -> list[bytes]:
    """The values that an application sees of these messages."""
    return [bytes(row.value) for row in map(receiver.accept, messages) if row is not None]


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def test_a_row_has_its_place_and_its_value() -> None:
    stamp = Stamp(QUERY, 7, 3)
    first, second = stamp.messages([b"a"]), stamp.messages([b"", b"c"])
    receiver = RowDeduplicator()
    assert receiver.accept(first[0]) == Row(b"a", QUERY, 7, 3, 0)
    assert receiver.accept(memoryview(second[0])) == Row(b"", QUERY, 7, 3, 1)
    assert stamp.count == 3


def test_messages_of_applications_are_no_rows() -> None:
    receiver = RowDeduplicator()
    (message,) = attempt([b"a"])
    for other in (b"", b"tick", b"\xf5row", message[: feed.SIZE - 1], b"\0" * 60):
        assert not RowDeduplicator.is_row(other)
        assert receiver.accept(other) is None
    assert RowDeduplicator.is_row(message)
    assert taken(receiver, [message, message[: feed.SIZE - 1]]) == [b"a"]
    assert receiver.repeats == 0


def test_a_retried_task_goes_on_where_the_first_one_died() -> None:
    receiver = RowDeduplicator()
    messages = attempt(numbered(10))
    assert taken(receiver, messages[:6]) == numbered(6)
    assert taken(receiver, messages) == numbered(4, start=6)
    assert (receiver.repeats, receiver.changed) == (6, 0)


def test_two_attempts_at_the_same_time_are_one() -> None:
    receiver = RowDeduplicator()
    one, other = attempt(numbered(4)), attempt(numbered(4))
    order = [one[0], other[0], other[1], one[1], one[2], other[2], other[3], one[3]]
    assert taken(receiver, order) == numbered(4)


def test_an_epoch_that_is_over_is_never_seen_again() -> None:
    receiver = RowDeduplicator()
    old, new = attempt(numbered(5)), attempt(numbered(5), epoch=1)
    assert taken(receiver, old[:5] + new[:2] + old + new) == numbered(5) * 2
    # Not even a partition of it that this receiver has never seen.
    assert taken(receiver, attempt(numbered(2), partition=9)) == []


def test_queries_and_partitions_are_counted_apart() -> None:
    receiver = RowDeduplicator()
    for query in (QUERY, OTHER):
        for partition in (0, 1):
            assert taken(receiver, attempt(numbered(3), query, 0, partition)) == numbered(3)


def test_who_joins_in_the_middle_gets_the_rest_and_what_is_sent_again_once() -> None:
    receiver = RowDeduplicator()
    messages = attempt(numbered(10))
    assert taken(receiver, messages[6:]) == numbered(4, start=6)
    assert taken(receiver, messages) == numbered(6)
    assert taken(receiver, messages) == []


def test_holes_are_filled_by_a_retry_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "RANGES_MAX", 3)
    receiver = RowDeduplicator()
    messages = attempt(numbered(12))
    assert len(taken(receiver, messages[1::2])) == 6
    # The two lowest holes between ranges were given up: 2 and 4 count as seen.
    assert taken(receiver, messages) == [b"0", b"6", b"8", b"10"]


def test_memory_is_bounded_and_the_stillest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PARTITIONS_MAX", 3)
    monkeypatch.setattr(feed, "QUERIES_MAX", 2)
    receiver = RowDeduplicator()
    for partition in range(5):
        taken(receiver, attempt(numbered(2), partition=partition))
    assert receiver.forgotten == 2
    assert taken(receiver, attempt(numbered(2), partition=4)) == []
    assert taken(receiver, attempt(numbered(2), partition=0)) == numbered(2)
    for name in range(10, 14):
        taken(receiver, attempt(numbered(1), UUID(int=name), epoch=8))
    assert len(receiver._epochs) == 2
    assert len(receiver._partitions) == 3


def test_an_attempt_with_other_rows_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    receiver = RowDeduplicator()
    rows = numbered(6)
    taken(receiver, attempt(rows)[:3])
    with caplog.at_level(logging.ERROR, "ringcast.job_rows"):
        taken(receiver, attempt(rows[::-1]))
    assert receiver.changed == 1
    (record,) = caplog.records
    assert "partition 0 of epoch 0" in record.getMessage()
    assert "sort" in record.getMessage()


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """What is to be seen, and messages in an order that retries and zombies may give them."""
    dice = random.Random(draw(st.integers(0, 1 << 32)))
    expected: list[bytes] = []
    order: list[bytes] = []
    zombies: list[Iterator[bytes]] = []
    for epoch in range(draw(st.integers(1, 4))):
        running: list[Iterator[bytes]] = []
        for partition in range(draw(st.integers(1, 3))):
            rows = [b"%d/%d/%d" % (epoch, partition, n) for n in range(draw(st.integers(0, 8)))]
            expected += rows
            messages = attempt(rows, epoch=epoch, partition=partition)
            died = draw(st.lists(st.integers(0, len(rows)), max_size=2))
            zombies += [iter(messages[:count]) for count in died]
            running.append(iter(messages))
        while running:
            some = dice.choice(running + zombies)
            message = next(some, None)
            if message is not None:
                order.append(message)
            elif some in running:
                running.remove(some)
            else:
                zombies.remove(some)
    return expected, order


@given(histories())
def test_every_row_is_seen_once_in_any_history(history: tuple[list[bytes], list[bytes]]) -> None:
    expected, order = history
    receiver = RowDeduplicator()
    assert sorted(taken(receiver, order)) == sorted(expected)
    assert receiver.changed == 0
    assert receiver.repeats == len(order) - len(expected)


@given(histories(), st.integers(0, 1 << 32))
def test_batches_of_rows_are_seen_as_single_rows_are(
    history: tuple[list[bytes], list[bytes]], seed: int
) -> None:
    """Cut anywhere, with messages of the application and other rows between them."""
    dice, order = random.Random(seed), list(history[1])
    for other in (b"hello", MAGIC, *attempt([b"changed"] * 5, epoch=1)):
        order.insert(dice.randint(0, len(order)), other)
    cuts = sorted(dice.choices(range(len(order) + 1), k=4))
    batches = [order[start:end] for start, end in pairwise([0, *cuts, len(order)])]
    one, many = RowDeduplicator(), RowDeduplicator()
    single = [row for message in order if (row := one.accept(message))]
    assert [row for batch in batches for row in many.accept_all(batch)] == single
    assert (many.repeats, many.changed) == (one.repeats, one.changed)


def test_a_loop_that_ends_early_has_not_received_the_rest_of_a_run() -> None:
    receiver, messages = RowDeduplicator(), attempt(numbered(10))
    rows = receiver.accept_each(messages)
    assert [next(rows).index for _ in range(4)] == [0, 1, 2, 3]
    rows.close()  # type: ignore[attr-defined]
    assert [row.index for row in receiver.accept_all(messages)] == [4, 5, 6, 7, 8, 9]
    assert (receiver.repeats, receiver.changed) == (4, 0)


def test_two_loops_over_one_run_share_its_rows() -> None:
    receiver, messages = RowDeduplicator(), attempt(numbered(6))
    one, other = receiver.accept_each(messages), receiver.accept_each(messages)
    assert [next(one).index, next(other).index, next(other).index] == [0, 1, 2]
    assert [row.index for row in one] == [3, 4, 5]
    assert list(other) == []


def test_the_former_name_still_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="RowDeduplicator"):
        assert ringcast.Feed is RowDeduplicator
