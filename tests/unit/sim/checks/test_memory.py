"""What members keep in memory: measured, and compared with what they may."""

from random import Random

import pytest

from ringcast import presets
from ringcast.control.slow_members import SlowMembers
from ringcast.layers.flow.layer import Flow, FlowLayer
from ringcast.layers.fragment.layer import FragmentLayer
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import Member, World
from ringcast.spec import StackSpec

WINDOW = 100_000


def trio(spec: StackSpec) -> tuple[World, Member, Member, Member]:
    world = World(seed=1, spec=spec, measure=True)
    a, b, c = world.join("a", "b", "c")
    return world, a, b, c


def small_window(retain: bool = False) -> StackSpec:
    return presets.lan().replace(NakAck4(max_bytes=WINDOW, retain=retain))


def problems(world: World) -> list[str]:
    return [f"{violation.member} {violation.text}" for violation in world.check()]


@pytest.mark.parametrize("retain", [True, False])
def test_a_busy_receiver_keeps_a_window_and_no_more(retain: bool) -> None:
    world, a, _b, c = trio(small_window(retain))
    c.busy()
    a.send([bytes(1_000)] * 1_000)
    world.run(5.0)
    waiting = c.memory.held.received
    assert WINDOW <= waiting <= c.memory.received_bound(1_000)
    assert c.memory.received(a.me) == waiting
    assert a.memory.held.sent <= WINDOW + 1_000
    assert problems(world) == []
    c.idle()
    world.settle()
    world.run(1.0)  # Until everybody is told that everybody has it.
    assert c.memory.peak.received >= waiting
    assert c.memory.received(a.me) == 0


def test_a_large_message_is_kept_once_at_either_end() -> None:
    world, a, b, _c = trio(small_window())
    message = Random(1).randbytes(3_000_000)
    a.send(message)
    world.settle()
    assert len(message) < a.memory.peak.sent <= a.memory.sent_bound(len(message))
    assert a.memory.sent_bound(len(message)) < len(message) + 2 * WINDOW
    assert len(message) <= b.memory.peak.received <= b.memory.received_bound(len(message))
    assert (a.memory.held, b.memory.held) == ((0, 0), (0, 0))


def test_a_member_that_keeps_more_than_the_bound_is_reported() -> None:
    world, a, b, _c = trio(small_window())
    a.send(b"x")
    world.settle()
    assert problems(world) == []
    a.probe.multicast.sent._store.nbytes = 10 * WINDOW
    b.probe.multicast.windows[a.me]._store.nbytes = 10 * WINDOW
    found = problems(world)
    assert [line.partition(" ")[0] for line in found] == ["a", "b"]
    assert "keeps 1,000,000 bytes of its own messages, more than 2" in found[0]
    assert "keeps 1,000,000 bytes of a's messages, more than 1" in found[1]


def test_a_member_that_a_sender_has_given_up_is_no_longer_compared() -> None:
    spec = small_window().insert(SlowMembers(policy="skip", bound=1.0))
    world, a, _b, c = trio(spec)
    c.busy()
    a.send([bytes(1_000)] * 1_000)
    world.run(5.0)
    assert not a.memory.waits_for_all
    assert c.memory.received(a.me) > c.memory.received_bound(1_000)
    assert problems(world) == []


def test_more_than_the_credits_before_an_application_is_reported() -> None:
    world, a, b, _c = trio(presets.stable().replace(Flow(max_credits=5_000)))
    a.send([bytes(500)] * 100)
    world.settle()
    assert problems(world) == []
    flow = next(part for part in b.stack.parts if isinstance(part, FlowLayer))
    flow.sources[a.me].waiting = 6_000
    assert problems(world)[0].startswith("b has 6,000 bytes of a to take, more than")


def test_what_waits_to_be_cut_is_counted_by_its_size() -> None:
    world, a, _b, c = trio(small_window())
    c.busy()
    a.send(bytes(1_000_000))
    world.run(1.0)
    layer = next(part for part in a.stack.parts if isinstance(part, FragmentLayer))
    assert (layer.holding, layer.holding_bytes(None)) == (0, 0)  # Its fragments count as taken.
    a.send(bytes(1_000_000))
    world.run(1.0)
    assert (layer.holding, layer.holding_bytes(None)) == (1, 1_000_000)
