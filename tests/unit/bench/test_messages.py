"""Messages of a benchmark: all of them, in order, and a check that notices when one is missing."""

from itertools import chain

import pytest

from ringcast_bench.job import BenchFailure
from ringcast_bench.messages import LARGE, POOL, RUN, Buffer, Check, Messages


@pytest.mark.parametrize("count", [1, RUN - 1, RUN, POOL, POOL + RUN + 7, 3 * POOL])
def test_runs_and_single_messages_are_the_same(count: int) -> None:
    messages = Messages(100, count)
    runs = list(chain.from_iterable(messages.runs()))
    assert len(runs) == count
    assert runs == list(messages.each())
    assert all(len(payload) == 100 for payload in runs)
    assert len(set(map(bytes, runs))) == min(count, POOL)


def test_everything_in_order_is_right() -> None:
    messages = Messages(50, 2_000)
    in_runs, by_itself, as_iterator = (Check(messages) for _ in range(3))
    verdicts = [in_runs.run(run) for run in messages.runs()]
    assert verdicts == [*[False] * (len(verdicts) - 1), True]
    assert [by_itself.one(payload) for payload in messages.each()][-1]
    as_iterator.each(messages.each())
    for check in (in_runs, by_itself, as_iterator):
        assert check.report()["count"] == 2_000
        assert check.ended > 0


def without(number: int, count: int) -> list[Buffer]:
    """All messages but one."""
    payloads = list(Messages(50, count).each())
    del payloads[number]
    return payloads


@pytest.mark.parametrize("lost", [0, 1, 700, 1_498])
def test_a_lost_message_is_noticed(lost: int) -> None:
    payloads = without(lost, 1_500)
    one_by_one, in_runs = Check(Messages(50, 1_500)), Check(Messages(50, 1_500))
    with pytest.raises(BenchFailure, match=f"message {lost:,} is not the one"):
        one_by_one.each(iter(payloads))
    with pytest.raises(BenchFailure):
        _ = [in_runs.run(payloads[at : at + 100]) for at in range(0, 1_499, 100)]


def test_messages_that_end_too_early_are_noticed() -> None:
    with pytest.raises(BenchFailure, match="ended after 1,499 of 1,500"):
        Check(Messages(50, 1_500)).each(iter(without(1_499, 1_500)))


def test_more_messages_than_were_sent_are_noticed() -> None:
    check = Check(Messages(50, 10))
    with pytest.raises(BenchFailure, match="11 messages came instead of 10"):
        check.run(list(Messages(50, 11).each()))


def test_large_messages_share_their_memory_and_differ() -> None:
    messages = Messages(LARGE, 3)
    views = [memoryview(payload) for payload in messages.each()]
    assert len({id(view.obj) for view in views}) == 1
    check = Check(messages)
    assert [check.one(bytes(view)) for view in views] == [False, False, True]
    with pytest.raises(BenchFailure):
        Check(messages).one(bytes(views[1]))
    with pytest.raises(BenchFailure):
        Check(messages).one(views[0][:-1])
