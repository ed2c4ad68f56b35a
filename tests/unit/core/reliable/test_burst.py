"""How much a sender may send at once when it was woken late."""

from ringcast.core.reliable.burst import BURST_BYTES_MIN, BURST_SECONDS_MAX, Burst

PACE = 10e6


def grown() -> Burst:
    """That of a sender which is woken every 20 ms."""
    burst = Burst()
    for _ in range(40):
        burst.limit(0.02 * PACE, PACE, 1_472, 0.0)
    return burst


def test_a_burst_grows_until_it_is_enough_and_no_further() -> None:
    burst = grown()
    assert burst.limit(0.02 * PACE, PACE, 1_472, 0.0) == 0.02 * PACE
    assert burst.limit(1.0 * PACE, PACE, 1_472, 0.0) <= BURST_SECONDS_MAX * PACE


def test_lost_packets_by_chance_cut_no_burst() -> None:
    burst = grown()
    before = burst.nbytes
    burst.on_lost(4, 1_000.0, 0.0)
    burst.on_lost(70, 1_000.0, 0.2)
    assert burst.nbytes == before


def test_a_burst_that_was_lost_is_cut_and_then_grows_once_per_phase() -> None:
    burst = grown()
    before = burst.nbytes
    burst.on_lost(100, 1_000.0, 0.0)
    cut = burst.nbytes
    assert cut < before
    for _ in range(10):
        burst.limit(0.025 * PACE, PACE, 1_472, 0.0)
    assert burst.nbytes == cut
    burst.on_phase(PACE)
    assert cut < burst.nbytes <= 1.15 * cut
    for _ in range(20):
        burst.on_lost(1_000, 1_000.0, 0.0)
    assert burst.nbytes == BURST_BYTES_MIN


def test_a_burst_to_a_fast_link_that_is_lost_shrinks_to_less_than_two_milliseconds() -> None:
    burst, pace = Burst(), 110e6
    for _ in range(40):
        burst.limit(0.02 * pace, pace, 1_472, 0.0)
        burst.on_lost(200, 1_000.0, 0.0)
    assert burst.limit(0.02 * pace, pace, 1_472, 0.0) <= 0.002 * pace


def test_a_probe_says_nothing_of_what_a_burst_has_to_be() -> None:
    burst = Burst()
    assert burst.limit(0.02 * PACE, PACE, 1_472, 1.25) == 1.25 * BURST_BYTES_MIN
    burst.on_phase(PACE)
    assert burst.nbytes == BURST_BYTES_MIN
    burst = grown()
    before = burst.nbytes
    burst.end_start(2.0)
    assert burst.nbytes == before / 2


def test_a_burst_that_was_not_enough_grows_although_its_rest_was() -> None:
    burst, pace = grown(), 10 * PACE
    burst.on_lost(1_000, 1_000.0, 0.0)
    first = burst.limit(0.01 * pace, pace, 1_472, 0.0)
    burst.limit(0.5 * first, pace, 1_472, 0.0)
    burst.on_phase(pace)
    assert burst.limit(0.01 * pace, pace, 1_472, 0.0) > first
