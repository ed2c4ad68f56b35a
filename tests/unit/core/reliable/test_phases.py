"""The cycle of probing, draining and cruising, and what losses in it tell."""

from random import Random

from ringcast.core.reliable.phases import (
    CALM,
    CALM_QUEUE_SECONDS,
    CHANCE_MAX,
    CRUISE_LOST,
    CRUISE_MAX,
    CRUISE_MIN,
    DRAIN,
    PHASES,
    PROBE,
    Phases,
)

RATE, RECEIVERS = 10e6, 3


def cycle(phases: Phases, lost: float, rounds: int = 20, queued: float = 0.0) -> list[float]:
    """Gains over some cycles, in which each receiver loses this share of what is sent."""
    rng, gains = Random(1), []
    for _ in range(rounds * PHASES):
        phases.on_sent(300_000)
        for _ in range(RECEIVERS):
            is_calm = phases.phase == CALM
            phases.on_lost(lost * 300_000, lost * 300_000 if is_calm else 0.0)
        phases.on_repaired(int(RECEIVERS * lost * 300_000))
        phases.go_on(RATE, RECEIVERS, queued, rng.random)
        gains.append(phases.gain)
    return gains


def test_a_probe_is_above_the_rate_and_what_it_queued_is_drained() -> None:
    phases = Phases()
    gains = cycle(phases, 0.0)
    assert max(gains) > 1.15
    assert min(gains) < 0.9
    assert phases.chance == 0


def test_a_probe_that_finds_more_is_followed_by_a_larger_one() -> None:
    phases, rate, gains = Phases(), RATE, list[float]()
    rng = Random(1)
    while phases.phase != PROBE or not gains:
        phases.go_on(rate, 1, 0.0, rng.random)
        gains.append(phases.gain)
    phases.go_on(rate, 1, 0.0, rng.random)
    assert phases.phase == DRAIN
    before = gains[-1]
    phases.go_on(rate * before, 1, 0.0, rng.random)
    assert phases.phase == PROBE
    assert phases.gain > before


def test_what_calm_phases_lose_is_chance_and_the_pace_makes_up_for_its_repairs() -> None:
    phases = Phases()
    gains = cycle(phases, 0.2)
    assert 0.1 < phases.chance <= CHANCE_MAX
    assert phases.cruise == CRUISE_MAX
    assert max(gains) > 1.5
    assert min(gains) < 1


def test_what_is_lost_while_much_is_queued_is_not_chance() -> None:
    phases = Phases()
    cycle(phases, 0.2, queued=2 * CALM_QUEUE_SECONDS)
    assert phases.chance == 0


def test_the_pace_falls_where_cruising_loses_more_than_calm_phases_do() -> None:
    phases, rng = Phases(), Random(1)
    for _ in range(40 * PHASES):
        phases.on_sent(300_000)
        for _ in range(RECEIVERS):
            phases.on_lost(2 * CRUISE_LOST * 300_000, 0.0)
        phases.go_on(RATE, RECEIVERS, 0.0, rng.random)
    assert phases.chance == 0
    assert phases.cruise < (CRUISE_MIN + CRUISE_MAX) / 2


def test_late_requests_for_what_a_probe_lost_are_not_chance() -> None:
    """They come while calm phases are measured, and the pace would make up for them."""
    phases = Phases()
    rng = Random(1)
    for _ in range(20 * PHASES):
        phases.on_sent(300_000)
        phases.on_repaired(150_000)
        phases.on_lost(0.5 * 300_000 if phases.phase in (DRAIN, CALM - 1, CALM) else 0.0, 0.0)
        phases.go_on(RATE, 1, 0.0, rng.random)
    assert phases.chance == 0
    assert phases.gain <= 1.2


def test_what_is_always_queued_is_drained() -> None:
    assert min(cycle(Phases(), 0.0, queued=0.01)) < min(cycle(Phases(), 0.0)) - 0.2
