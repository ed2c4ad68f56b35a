"""The delay before a gap is requested, which follows the reordering of the path."""

from ringcast.core.reliable.reordering import ReorderingDelay


def test_a_path_that_does_not_reorder_has_the_least_delay() -> None:
    assert ReorderingDelay(0.001, 0.1).seconds == 0.001


def test_the_delay_grows_with_late_arrivals_and_decays_with_requests() -> None:
    delay = ReorderingDelay(0.001, 0.1)
    delay.sample(0.01)
    assert delay.seconds == 0.0125
    for _ in range(100):
        delay.decay()
    assert delay.seconds == 0.001


def test_the_delay_has_an_upper_bound() -> None:
    delay = ReorderingDelay(0.001, 0.1)
    delay.sample(5.0)
    assert delay.seconds == 0.1


def test_a_less_late_arrival_lowers_the_delay_slowly() -> None:
    delay = ReorderingDelay(0.001, 0.1)
    delay.sample(0.01)
    delay.sample(0.001)
    assert delay.seconds == 1.25 * (0.9 * 0.01)
