"""When what is missing is asked for, and asked for again."""

from ringcast.core.repair import EAGER, Pace

INTERVAL = 0.1


def a_pace(round_trip: float = 0.004) -> Pace:
    pace = Pace(0.001, INTERVAL)
    pace.answered(round_trip, 1)
    return pace


def test_a_few_times_at_the_same_interval_then_twice_as_long() -> None:
    pace = a_pace()
    first = pace.repeat(1)
    assert first == 0.004 + 4 * 0.002
    assert [pace.repeat(tries) for tries in range(1, EAGER + 1)] == [first] * EAGER
    assert [pace.repeat(EAGER + more) for more in (1, 2, 3)] == [2 * first, 4 * first, 8 * first]


def test_there_is_a_longest_and_a_shortest_pause() -> None:
    assert a_pace().repeat(100) == 2 * INTERVAL
    assert a_pace(0.000_001).repeat(1) == Pace(0.001, INTERVAL).repeat_min
    assert a_pace(10.0).repeat(1) == 2 * INTERVAL
    assert a_pace(10.0).repeat(100) == 8 * INTERVAL


def test_only_an_answer_to_a_single_request_says_how_long_a_round_trip_is() -> None:
    pace = a_pace()
    before = pace.repeat(1)
    pace.answered(0.5, 2)
    assert pace.repeat(1) == before
    pace.answered(0.5, 1)
    assert pace.repeat(1) > before


def test_gaps_are_asked_for_later_where_messages_overtake_each_other() -> None:
    pace = a_pace()
    assert pace.delay == 0.001
    pace.overtaken(0.01)
    assert pace.delay == 0.0125
    for _ in range(100):
        pace.calm()
    assert pace.delay == 0.001
