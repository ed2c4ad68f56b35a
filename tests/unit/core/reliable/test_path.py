"""The round trip and the delivery rate of one path."""

import pytest

from ringcast.core.reliable.path import RATE_MIN, Path


def test_the_rate_is_what_arrives_in_a_sample() -> None:
    path = Path(0, 32_000, 0.0)
    for step in range(1, 11):
        path.on_arrived(20 * step, 20 * step, 1_000.0, 0.0, 0.002 * step, 0.002 * (step - 1))
    assert path.rate == pytest.approx(10e6)


def test_acks_that_are_read_at_once_end_one_sample() -> None:
    path = Path(0, 32_000, 0.0)
    for arrived in (20, 60, 100):
        path.on_arrived(arrived, 100, 1_000.0, 0.0, 0.01, 0.008)
    assert path.rate == pytest.approx(10e6)
    path.on_arrived(200, 200, 1_000.0, 0.0, 0.02, 0.018)
    assert path.rate == pytest.approx(10e6)


def test_nothing_arrives_faster_than_it_was_sent() -> None:
    path = Path(0, 32_000, 0.0)
    path.on_arrived(100, 100, 1_000.0, 0.0, 0.018, 0.008)  # Read 8 ms late.
    path.on_arrived(220, 220, 1_000.0, 0.0, 0.026, 0.02)
    assert path.rate == pytest.approx(10e6)


def test_a_loss_before_any_ack_gives_a_first_rate() -> None:
    path = Path(0, 32_000, 0.0)
    assert not path.is_measured
    path.on_lost(1, 0.001)
    assert path.rate >= RATE_MIN
    assert path.lost_at == 0.001


def test_a_round_trip_that_may_be_a_repair_counts_twice_the_known_one_at_most() -> None:
    path = Path(0, 32_000, 0.0)
    path.on_rtt(0.001, 1, 0.001)
    path.on_lost(1, 0.01)
    path.on_rtt(0.5, 2, 0.502)
    assert path.rtt < 0.002
    assert path.base_rtt == 0.001


def test_a_sender_that_is_always_late_still_finds_a_higher_rate() -> None:
    """It is awake every 16 ms, and reads eight acks at once; it counts as idle meanwhile."""
    path = Path(0, 32_000, 0.0)
    path.on_lost(1, 0.0)
    arrived = 0
    for step in range(1, 40):
        now = 0.016 * step
        for _ in range(8):
            arrived += 16 if step < 20 else 20
            path.on_arrived(arrived, arrived, 1_000.0, 0.9 * now, now, now - 0.016, 0.02)
    assert 9e6 < path.rate <= 10e6


def test_a_round_trip_after_an_outage_counts_at_once() -> None:
    path = Path(0, 32_000, 0.0)
    path.on_rtt(0.06, 1, 0.06)
    path.on_rtt(0.002, 2, 0.07)
    assert path.rtt < 0.005
