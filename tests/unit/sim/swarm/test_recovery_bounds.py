"""The time that the swarm gives a group is what its timers explain at that moment."""

from ringcast import presets
from ringcast.control.failure_detector import AWAY_TIMEOUTS, FailureDetector, FailureDetectorPart
from ringcast.sim import Member, World
from ringcast.sim.swarm.recovery_bounds import reunion_seconds


def suspects(member: Member, other: Member) -> bool:
    (failure,) = (p for p in member.stack.parts if isinstance(p, FailureDetectorPart))
    return other.me in failure.suspected


def test_a_member_that_is_suspected_may_be_evicted_and_stay_away() -> None:
    world = World(seed=1, spec=presets.lan())
    a, b, _ = world.join("a", "b", "c")
    plain = reunion_seconds(world)
    world.link(a, b).loss = 1.0
    world.run_until(lambda: suspects(b, a), 10.0, "a suspicion")
    assert not any(member.stack.counters.get("pairs_parted") for member in world.running)
    assert reunion_seconds(world) >= plain + AWAY_TIMEOUTS * FailureDetector().timeout


def test_a_member_that_has_crashed_stays_away_from_no_group() -> None:
    world = World(seed=1, spec=presets.lan())
    a, b, _ = world.join("a", "b", "c")
    plain = reunion_seconds(world)
    a.crash()
    world.run_until(lambda: suspects(b, a), 10.0, "a suspicion")
    assert reunion_seconds(world) < plain + AWAY_TIMEOUTS * FailureDetector().timeout
