"""How long messages take: what the meter is told, and what a whole simulation says."""

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.sim.checks.meter import Meter
from ringcast.sim.checks.spread import Spread
from ringcast.sim.trial import Trial, TrialOutcome, parse_fault, run

A, B = Address(1), Address(2)
VIEW, LATER = ViewId(1, A), ViewId(2, A)


def test_quantiles_of_a_hundred() -> None:
    spread = Spread()
    for number in range(1, 101):
        spread.add(number / 1_000)
    assert spread.quantile(0.5) == pytest.approx(0.050)
    assert spread.quantile(0.99) == pytest.approx(0.099)
    assert spread.quantile(1.0) == spread.longest == pytest.approx(0.100)


def test_the_meter_counts_by_weight() -> None:
    spread = Spread()
    spread.add(0.001, 99)
    spread.add(5.0)
    assert spread.quantile(0.99) == pytest.approx(0.001)
    assert spread.quantile(0.991) == pytest.approx(5.0)


def test_nothing_has_no_quantile() -> None:
    assert Spread().quantile(0.5) is None


def test_memory_does_not_grow_with_what_is_measured() -> None:
    spread = Spread()
    for number in range(100_000):
        spread.add(number * 1.2345e-5)
    assert len(spread._weights) < 4_000
    assert spread.quantile(0.5) == pytest.approx(50_000 * 1.2345e-5, rel=0.01)


@pytest.mark.parametrize(("paced", "expected"), [(True, 1.0), (False, 0.4)])
def test_waiting_for_room_counts_where_messages_have_a_planned_time(
    paced: bool, expected: float
) -> None:
    meter = Meter(paced=paced)
    meter.accepted(A, 10, asked_at=1.0, now=1.6)
    meter.numbered(VIEW, A, 10)
    meter.delivered(VIEW, A, B, range(10), now=2.0)
    assert meter.latency.longest == pytest.approx(expected)
    assert (meter.latency.count, meter.last_at) == (10, 2.0)


def test_runs_may_be_cut_anew_on_the_way() -> None:
    meter = Meter(paced=True)
    meter.accepted(A, 3, asked_at=0.0, now=0.0)
    meter.accepted(A, 3, asked_at=1.0, now=1.0)
    meter.numbered(VIEW, A, 4)
    meter.numbered(LATER, A, 2)
    meter.delivered(VIEW, A, B, range(2, 4), now=2.0)
    assert meter.latency.quantile(0.5) == pytest.approx(1.0)
    assert meter.latency.longest == pytest.approx(2.0)
    meter.delivered(LATER, A, B, range(2), now=4.0)
    assert meter.latency.longest == pytest.approx(3.0)
    assert meter.latency.count == 4


def test_what_comes_back_to_the_sender_is_left_out() -> None:
    meter = Meter(paced=True)
    meter.accepted(A, 1, asked_at=0.0, now=0.0)
    meter.numbered(VIEW, A, 1)
    meter.delivered(VIEW, A, A, range(1), now=2.0)
    assert meter.latency.count == 0


def test_a_view_that_is_over_is_forgotten() -> None:
    meter = Meter(paced=True)
    meter.accepted(A, 1, asked_at=0.0, now=0.0)
    meter.numbered(VIEW, A, 1)
    meter.forget(VIEW)
    meter.delivered(VIEW, A, B, range(1), now=2.0)
    assert meter.latency.count == 0


# --- in a simulation -----------------------------------------------------------------------------


def simulate(**settings: object) -> TrialOutcome:
    given: dict[str, object] = {"spec": presets.lan(), "members": 3, "delay": (0.01, 0.01)}
    return run(Trial(**(given | settings)))  # type: ignore[arg-type]  # names as Trial has them


def test_the_latency_of_a_good_network_is_its_delay() -> None:
    outcome = simulate(messages=100, duration=1.0)
    assert outcome.latency_p50 == pytest.approx(0.01)
    assert outcome.latency_max == pytest.approx(0.01)
    assert outcome.throughput == pytest.approx(100 / 0.51, rel=0.02)
    assert outcome.views == 0


def test_a_window_that_is_too_small_shows_in_the_latency_and_the_throughput() -> None:
    small = presets.lan().replace("NakAck4", capacity=4)
    paced = simulate(messages=100, duration=0.1, spec=small, senders=1)
    assert paced.latency_max is not None
    assert paced.latency_max > 0.2, "waiting for room counts"
    flat_out = simulate(messages=100, spec=small, senders=1)
    assert flat_out.latency_max == pytest.approx(0.01, abs=1e-6), "who waits has nothing ready"
    # A window of 4 a round trip, acked at its quarter: 25 round trips of 20 ms or less.
    assert flat_out.throughput is not None
    assert 200 <= flat_out.throughput <= 800


def test_a_large_message_takes_as_long_as_all_its_fragments() -> None:
    outcome = simulate(messages=1, size=1_000_000, bandwidth=1_000_000.0, senders=1)
    assert outcome.latency_p50 == pytest.approx(1.0, rel=0.1)


def test_views_after_the_beginning_are_counted() -> None:
    outcome = simulate(messages=300, duration=10.0, faults=(parse_fault("crash", "m3@1"),))
    assert outcome.views >= 1


def test_a_sender_alone_has_no_latency() -> None:
    outcome = simulate(members=1, messages=10)
    assert outcome.latency_p50 is outcome.latency_p99 is outcome.latency_max is None
