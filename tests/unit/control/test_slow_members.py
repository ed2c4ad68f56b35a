"""Slow members: who holds the others back, for how long, and what each policy does about it."""

from collections.abc import Sequence

import pytest

from ringcast.control.slow_members import SlowMembers, SlowMembersPart, holding_back
from ringcast.core.model.events import Event, Outpaced, Skipped
from ringcast.core.wire.frames import Data
from ringcast.errors import ConfigError
from ringcast.layers.flow.layer import Flow
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.unicast import Unicast
from tests.unit.harness import Flight, Net, clean
from tests.unit.layers.ladder import A, B, C, Climber, D, climbers

WINDOW = 40


def group(policy: str, count: int = 4, flow: Flow | None = None) -> tuple[Net, list[Climber]]:
    slow = SlowMembers(policy=policy, bound=2.0)
    layers: Sequence[Flow | NakAck4 | Unicast] = [NakAck4(capacity=WINDOW, retain=False), Unicast()]
    return climbers(count, *([flow] if flow else []), *layers, slow, mtu=5_000)


def outpaced(member: Climber) -> list[Event]:
    return [event for event in member.events if isinstance(event, Outpaced)]


# --- who it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positions", "before", "found"),
    [
        ({}, {}, set()),
        ({A: 9, B: 0, C: 9, D: 9}, {}, {B}),
        ({A: 9, B: 0, C: 9, D: 9}, {A: 9, B: 0, C: 9, D: 9}, {B}),
        ({A: 9, B: 1, C: 1, D: 1}, {A: 9, B: 0, C: 0, D: 0}, set()),
        ({A: 9, B: 0, C: 0, D: 0}, {A: 9, B: 0, C: 0, D: 0}, {B, C, D}),
        ({A: 9, B: 1}, {A: 9, B: 0}, set()),
        ({A: 9, B: 0}, {A: 9, B: 0}, {B}),
        ({A: 0, B: 9, C: 9}, {A: 0, B: 9, C: 9}, set()),
    ],
    ids=[
        "no brake is on",
        "one is far behind",
        "one has not moved",
        "all are slow alike",
        "nobody moves",
        "the only other one moves",
        "the only other one does not move",
        "only this member is slow itself",
    ],
)
def test_the_members_that_hold_a_sender_back(
    positions: dict[int, int], before: dict[int, int], found: set[int]
) -> None:
    assert holding_back(A, positions, before) == found  # type: ignore[arg-type]


# --- what is done --------------------------------------------------------------------------------


def test_the_policy_wait_only_reports_the_members_and_how_long_they_took() -> None:
    net, (a, b, _, d) = group("wait")
    d.is_slow = True
    a.send([b"x"] * 100)
    net.run(10.0)
    assert len(b.payloads(A)) == WINDOW
    assert a.env.counters["held_back_ms"] == pytest.approx(10_000, abs=600)
    snapshot = a.get(SlowMembersPart).snapshot()
    assert snapshot.policy == "wait"
    assert snapshot.held_back == {"m4": pytest.approx(10.0, abs=0.6)}
    assert outpaced(a) == []
    d.is_slow = False
    net.run(1.0)
    assert len(d.payloads(A)) == 100


def test_skip_goes_on_without_it_and_both_sides_are_told() -> None:
    net, (a, b, c, d) = group("skip")
    net.policy = lambda flight: () if flight.target == D else clean(flight)
    a.send([bytes([n]) for n in range(100)])
    net.run(1.9)
    assert len(b.payloads(A)) == WINDOW
    net.run(0.4)
    assert len(b.payloads(A)) == len(c.payloads(A)) == 100
    assert outpaced(a) == [Outpaced(D, 2.0)]
    assert a.get(NakAck4Layer).sent.outstanding == 0
    net.policy = clean
    net.run(1.0)
    assert sum(event.last - event.first + 1 for event in d.told(Skipped)) == 100
    a.send([b"next"])
    net.run(1.0)
    assert d.payloads(A) == [b"next"]
    assert a.env.counters["caught_up"] == 1


def test_one_that_only_skips_has_not_caught_up_and_costs_its_bound_once() -> None:
    net, (a, b, _, d) = group("skip")

    def no_data_for_d(flight: Flight) -> tuple[float, ...]:
        return () if flight.target == D and isinstance(flight.frame, Data) else (0.01,)

    net.policy = no_data_for_d
    a.send([b"x"] * 4_000)  # Two seconds and twenty ticks, when nobody holds them up.
    begin = net.now
    while len(b.payloads(A)) < 4_000:
        net.run(0.1)
        assert net.now - begin < 1.25 * 2.0 + 4.0
    assert outpaced(a) == [Outpaced(D, 2.0)]
    assert d.told(Skipped)


def test_evict_asks_for_a_view_without_it() -> None:
    net, (a, b, _, d) = group("evict")
    d.is_slow = True
    a.send([b"x"] * 100)
    net.run(2.3)
    assert [member for member, _ in a.evicted] == [D]
    assert a.evicted[0][1] == "held the group back for 2 seconds, as seen by m1"
    assert len(b.payloads(A)) == WINDOW
    net.install(A, B, C, on=[A, B, C])
    net.run(1.0)
    assert len(b.payloads(A)) == 100
    assert a.get(SlowMembersPart).held_back == {}


def test_missing_credits_are_a_brake_as_well() -> None:
    net, (a, b, _, d) = group("skip", flow=Flow(max_credits=10))
    d.is_slow = True
    a.send([b"x"] * 30)
    net.run(1.9)
    assert len(b.payloads(A)) == 10
    net.run(0.5)
    assert len(b.payloads(A)) == 30
    assert outpaced(a) == [Outpaced(D, 2.0)]


def test_all_that_are_slow_alike_are_waited_for() -> None:
    net, (a, b, c, d) = group("evict")
    for member in (b, c, d):
        member.is_slow = True
    a.send([b"x"] * 400)
    while a.waiting:
        net.run(0.05)
        for member in (b, c, d):
            member.take(1)
        assert net.now < 60.0
    assert a.evicted == []
    assert net.now > 10.0


def test_one_that_is_much_slower_than_the_rest_is_found_though_it_moves() -> None:
    net, (a, b, _, d) = group("evict")
    d.is_slow = True
    a.send([b"x"] * 4_000)
    while not a.evicted:
        net.run(0.05)
        d.take(1)
        assert net.now < 10.0
    assert {member for member, _ in a.evicted} == {D}
    assert b.evicted == []


def test_a_group_that_keeps_up_is_never_blamed() -> None:
    net, members = group("evict")
    for member in members:
        member.send([b"x"] * 2_000)
    net.run(10.0)
    for member in members:
        assert member.waiting == 0
        assert member.evicted == []


def test_a_member_by_itself_looks_at_nothing() -> None:
    net, (a,) = group("evict", count=1)
    a.send([b"x"] * 100)
    assert net.settle() < 1.0


@pytest.mark.parametrize(("name", "value"), [("policy", "kill"), ("bound", 0)])
def test_settings_that_make_no_sense_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        SlowMembers(**{name: value})  # type: ignore[arg-type]
