"""The round-trip estimator: RFC 6298 with Karn's rule."""

from ringcast.core.reliable.rtt import BACKOFF_MAX, RttEstimator


def test_the_initial_timeout_counts_before_the_first_sample() -> None:
    rtt = RttEstimator(0.1)
    assert rtt.timeout == 0.1
    assert not rtt.has_sample


def test_the_first_sample_replaces_the_initial_timeout() -> None:
    rtt = RttEstimator(0.1)
    rtt.sample(0.002)
    assert 0.002 < rtt.timeout <= 0.006
    assert rtt.has_sample


def test_equal_round_trips_bring_the_timeout_down_to_the_mean() -> None:
    rtt = RttEstimator(0.1)
    for _ in range(50):
        rtt.sample(0.01)
    assert 0.01 <= rtt.timeout < 0.011


def test_varying_round_trips_keep_the_timeout_above_the_longest() -> None:
    rtt = RttEstimator(0.1)
    for number in range(50):
        rtt.sample(0.01 if number % 2 else 0.02)
    assert 0.02 < rtt.timeout < 0.06


def test_the_timeout_backs_off_until_the_next_sample() -> None:
    rtt = RttEstimator(0.1)
    rtt.sample(0.01)
    before = rtt.timeout
    rtt.back_off()
    rtt.back_off()
    assert rtt.timeout == 4 * before
    for _ in range(20):
        rtt.back_off()
    assert rtt.timeout == BACKOFF_MAX * before
    rtt.sample(0.01)
    assert rtt.timeout <= before


def test_a_doubtful_answer_makes_the_mean_longer_by_a_quarter_at_the_most() -> None:
    rtt = RttEstimator(0.1)
    for _ in range(50):
        rtt.sample(0.01)
    before = rtt.timeout
    rtt.doubt(0.005)
    assert rtt.timeout == before
    rtt.doubt(1.0)
    assert before + 0.002 < rtt.timeout <= before + 0.0026
