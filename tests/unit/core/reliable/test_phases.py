"""The cycle of probing, draining and cruising, and what losses in it tell."""

from random import Random

from ringcast.core.reliable.phases import (
    CALM,
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


def cycle(phases: Phases, lost: float, rounds: int = 20, is_queued: bool = False) -> list[float]:
    """Gains over some cycles, in which each receiver loses this share of what is sent."""
    rng, gains = Random(1), []
    for _ in range(rounds * PHASES):
        phases.on_sent(300_000)
        for _ in range(RECEIVERS):
            phases.on_lost(lost * 300_000)
        phases.on_repaired(int(RECEIVERS * lost * 300_000))
        phases.go_on(RATE, RECEIVERS, is_queued, rng.random)
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
        phases.go_on(rate, 1, False, rng.random)
        gains.append(phases.gain)
    phases.go_on(rate, 1, False, rng.random)
    assert phases.phase == DRAIN
    before = gains[-1]
    phases.go_on(rate * before, 1, False, rng.random)
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
    cycle(phases, 0.2, is_queued=True)
    assert phases.chance == 0


def test_the_pace_falls_where_cruising_loses_more_than_calm_phases_do() -> None:
    phases, rng = Phases(), Random(1)
    for _ in range(40 * PHASES):
        phases.on_sent(300_000)
        is_calm = phases.phase in (DRAIN, CALM - 1, CALM)
        for _ in range(RECEIVERS):
            phases.on_lost(0.0 if is_calm else 2 * CRUISE_LOST * 300_000)
        phases.go_on(RATE, RECEIVERS, False, rng.random)
    assert phases.chance == 0
    assert phases.cruise < (CRUISE_MIN + CRUISE_MAX) / 2
