"""Two members that do not reach each other harm only one of them; the others go on."""

import pytest

from ringcast import presets
from ringcast.control.failure_detector import FailureDetector
from ringcast.core.model.events import Expelled
from ringcast.sim import World
from ringcast.spec import StackSpec

DETECTOR = FailureDetector()
BOUND = 2 * DETECTOR.interval + DETECTOR.timeout + DETECTOR.verify + DETECTOR.pair_timeout + 1.0
"""Seconds from the cut to a view without one of the two, as documented, and a view change."""
SPECS = {"lan": presets.lan(), "stable": presets.stable()}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("cut", [("bd", "db"), ("bd",), ("db",)], ids=["both", "b-d", "d-b"])
@pytest.mark.parametrize("order", ["abcde", "abdce", "acbed"])
def test_of_a_pair_that_is_cut_the_less_senior_has_to_go(
    spec: StackSpec, order: str, cut: tuple[str, ...]
) -> None:
    world = World(seed=1, spec=spec)
    for name in order:
        world.join(name)
    a, b, c, d, e = (world.members[name] for name in "abcde")
    world.drop(lambda f: f.source + f.target in cut)
    view = a.view
    assert view is not None
    less_senior = max((b, d), key=lambda m: view.rank(m.me))
    others = [m for m in (a, b, c, d, e) if m is not less_senior]
    b.send([b"message"] * 10)
    world.run_until(lambda: all(m.view is not None and len(m.view) == 4 for m in others), BOUND)
    assert all(m.view is not None and less_senior.me not in m.view for m in others)
    before = len(c.delivered)
    more_senior = b if less_senior is d else d
    more_senior.send([b"after"] * 10)
    world.run(1.0)
    assert len(c.delivered) == before + 10
    (reason,) = {event.reason for event in less_senior.events if isinstance(event, Expelled)}
    assert "does not hear" in reason


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("way", ["both", "to b", "from b"])
def test_a_member_that_several_do_not_reach_has_to_go_alone(spec: StackSpec, way: str) -> None:
    """It is more senior than each of them, and only the coordinator reaches it."""
    world = World(seed=5, spec=spec)
    for name in "abcde":
        world.join(name)
    a, c, d, e = (world.members[name] for name in "acde")
    far = {"both": ("bc", "bd", "be", "cb", "db", "eb"), "to b": ("cb", "db", "eb")}
    cut = far.get(way, ("bc", "bd", "be"))
    world.drop(lambda f: f.source + f.target in cut)
    world.run_until(lambda: all(len(m.view or ()) == 4 for m in (a, c, d, e)), BOUND)
    world.run(5.0)
    assert all(set(m.view or ()) == {a.me, c.me, d.me, e.me} for m in (a, c, d, e))
    assert not any(isinstance(event, Expelled) for m in (c, d, e) for event in m.events)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_coordinator_that_several_do_not_hear_has_to_go_alone(spec: StackSpec) -> None:
    world = World(seed=6, spec=spec)
    for name in "abcde":
        world.join(name)
    a, b, c, d, e = (world.members[name] for name in "abcde")
    world.drop(lambda f: f.source + f.target in ("ac", "ad", "ae"))
    world.run_until(lambda: all(len(m.view or ()) == 4 for m in (b, c, d, e)), BOUND)
    world.run(5.0)
    assert all(set(m.view or ()) == {b.me, c.me, d.me, e.me} for m in (b, c, d, e))
    (reason,) = {event.reason for event in a.events if isinstance(event, Expelled)}
    assert "does not hear" in reason


@pytest.mark.parametrize("way", ["ah", "ha", "both"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_pair_of_a_large_group_is_noticed_as_well(spec: StackSpec, way: str) -> None:
    """In a ring of twenty the two would not watch each other."""
    world = World(seed=7, spec=spec)
    names = "abcdefghijklmnopqrst"
    for name in names:
        world.join(name)
    members = [world.members[name] for name in names]
    cut = ("ch", "hc") if way == "both" else (way.replace("a", "c"),)
    world.drop(lambda f: f.source + f.target in cut)
    others = [m for m in members if m.name != "h"]
    world.run_until(lambda: all(len(m.view or ()) == 19 for m in others), BOUND)
    members[2].send([b"after"] * 10)
    world.run(1.0)
    assert all(len(m.delivered) == 10 for m in others)


def test_a_pair_is_together_again_after_the_cut() -> None:
    world = World(seed=2, spec=presets.lan())
    members = world.join(*"abcde")
    rule = world.drop(lambda f: {f.source, f.target} == {"b", "d"})
    world.run(BOUND)
    rule.remove()
    world.run_until(lambda: world.united, 4 * DETECTOR.timeout + 5.0)
    world.settle()
    assert all(len(member.view or ()) == 5 for member in members)
    assert world.check() == []


def test_a_short_cut_of_a_pair_changes_nothing() -> None:
    world = World(seed=3, spec=presets.lan())
    a, *_ = world.join(*"abcde")
    views = len(a.views)
    rule = world.drop(lambda f: {f.source, f.target} == {"b", "d"})
    world.run(2.0)
    rule.remove()
    world.run(10.0)
    assert len(a.views) == views


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("order", ["abcde", "acbde"])
def test_a_member_that_does_not_hear_the_coordinator_has_to_go(spec: StackSpec, order: str) -> None:
    """The coordinator hears it, and would wait for its acks."""
    world = World(seed=4, spec=spec)
    for name in order:
        world.join(name)
    a, e = world.members["a"], world.members["e"]
    world.drop(lambda f: f.source + f.target == "ae")
    a.send([b"message"] * 10)
    world.run_until(lambda: a.view is not None and len(a.view) == 4, BOUND)
    assert a.view is not None
    assert e.me not in a.view
    world.run_until(lambda: e.view is not None and len(e.view) == 1, 2.0)
    (reason,) = {event.reason for event in e.events if isinstance(event, Expelled)}
    assert "went on without" in reason


@pytest.mark.parametrize("seed", range(6))
def test_a_newcomer_is_admitted_although_a_member_does_not_hear_the_coordinator(seed: int) -> None:
    """Its view has begun, and waits for the member, when the pair is parted."""
    world = World(seed, presets.lan())
    for name in "abcde":
        world.join(name)
    a, e = world.members["a"], world.members["e"]
    world.drop(lambda f: f.source + f.target == "ae")
    newcomer = world.start("f")
    world.run_until(lambda: newcomer.view is not None, BOUND)
    assert newcomer.view is not None
    assert a.me in newcomer.view
    assert e.me not in newcomer.view


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("fault", ["pair", "pause"])
def test_senders_go_on_up_to_their_windows_while_nothing_arrives_at_one_member(
    spec: StackSpec, fault: str
) -> None:
    """On a network of packets: congestion control waits for no member that is not there."""
    world = World(seed=1, spec=spec.replace("Wire", mtu=1_472))
    a, b, c, d = world.join("a", "b", "c", "d")
    if fault == "pair":
        world.drop(lambda f: {f.source, f.target} == {"b", "d"})
    else:
        d.pause()
    view = a.view
    for sender in (a, b):
        sender.send_many([bytes(1_000)] * 2_000)
    world.run(2.0)
    assert a.view == b.view == view, "not yet"
    assert [len(member.delivered) for member in (a, b, c)] == [4_000] * 3
    assert world.check() == []
