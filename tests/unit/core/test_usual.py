"""When to repeat a question: soon where answers come soon, and never by the time of a lost one."""

from ringcast.core.usual import BACKOFF_MAX, Usual


def test_nothing_is_known_at_first() -> None:
    assert Usual(0.1).pause == 0.1


def test_the_first_answer_counts_more_than_the_guess() -> None:
    usual = Usual(0.1)
    usual.answered(0.002)
    assert 0.002 < usual.pause <= 0.006


def test_answers_that_take_the_same_time_leave_little_doubt() -> None:
    usual = Usual(0.1)
    for _ in range(50):
        usual.answered(0.01)
    assert 0.01 <= usual.pause < 0.011


def test_answers_that_differ_leave_more() -> None:
    usual = Usual(0.1)
    for number in range(50):
        usual.answered(0.01 if number % 2 else 0.02)
    assert 0.02 < usual.pause < 0.06


def test_repeated_questions_make_the_next_ones_wait_until_one_is_answered_at_once() -> None:
    usual = Usual(0.1)
    usual.answered(0.01)
    before = usual.pause
    usual.repeated()
    usual.repeated()
    assert usual.pause == 4 * before
    for _ in range(20):
        usual.repeated()
    assert usual.pause == BACKOFF_MAX * before
    usual.answered(0.01)
    assert usual.pause <= before
