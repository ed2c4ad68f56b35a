"""The world's own interface, as users type it."""

import pytest

from ringcast import presets
from ringcast.errors import Closed, ConfigError, LocalError, Timeout
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import ProcessState, World


@pytest.fixture
def world() -> World:
    return World(seed=7, spec=presets.lan())


def test_the_example_of_the_documentation() -> None:
    world = World(seed=7, spec=presets.lan(), loss=0.1)
    a, b, c = world.join("a", "b", "c")
    a.send(b"x")
    assert a.try_send(b"y")
    world.run(seconds=2.0)
    assert [m.payload for m in b.delivered] == [b"x", b"y"]
    assert a.me == b.delivered[0].sender
    assert b.views[-1] == a.view
    assert b.skipped == []
    assert "counters" in b.stats()
    world.partition([a], [b, c])
    world.heal()
    world.loss = 0.0
    rule = world.drop(
        lambda f: f.source == "a" and f.target == "b" and f.kind == "DATA" and 3 in f.seqnos
    )
    a.send(b"z")
    world.run(0.05)
    rule.remove()
    world.run_until(lambda: len(b.delivered) == 3, seconds=30.0)
    world.settle()
    assert world.check() == []


def test_join_waits_for_all_and_start_does_not(world: World) -> None:
    a, b = world.join("a", "b")
    assert a.view is not None
    assert a.view == b.view
    c = world.start("c")
    assert c.view is None
    with pytest.raises(LocalError, match="already"):
        world.start("c")


def test_what_finds_no_room_is_queued_in_order() -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(capacity=3)))
    a, b = world.join("a", "b")
    for number in range(10):
        a.send(b"%d" % number)
    assert a.blocked
    assert a.queued == 7
    assert not a.try_send(b"no")
    world.settle()
    assert a.queued == 0
    assert [m.payload for m in b.delivered] == [b"%d" % number for number in range(10)]


def test_messages_to_one_member(world: World) -> None:
    a, b, c = world.join("a", "b", "c")
    a.send([b"one", b"two"], to=b)
    c.send(b"three", to=b.me)
    a.send(b"to myself", to=a)
    world.settle()
    assert sorted(bytes(m.payload) for m in b.delivered) == [b"one", b"three", b"two"]
    assert [m.payload for m in a.delivered] == [b"to myself"]
    assert not c.delivered
    assert world.check() == []


def test_run_until_gives_up(world: World) -> None:
    world.join("a")
    with pytest.raises(Timeout, match=r"0\.5 simulated seconds"):
        world.run_until(lambda: False, seconds=0.5)


def test_settle_says_what_is_outstanding(world: World) -> None:
    a, b = world.join("a", "b")
    b.busy()
    a.send([b"x"] * 5)
    with pytest.raises(Timeout, match="b has 0 of 5 messages of a"):
        world.settle(seconds=2.0)


def test_time_stands_still_between_runs(world: World) -> None:
    world.run(1.5)
    assert world.now == 1.5
    world.run(0.0)
    assert world.now == 1.5


def test_a_member_that_is_gone_refuses(world: World) -> None:
    a, b = world.join("a", "b")
    b.crash()
    assert b.state is ProcessState.CRASHED
    with pytest.raises(Closed):
        b.send(b"x")
    with pytest.raises(LocalError, match="cannot be resumed"):
        b.resume()
    with pytest.raises(LocalError, match="cannot be paused"):
        b.pause()
    assert a.alive


def test_a_blocked_sender_that_leaves_is_told() -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(capacity=3)))
    a, b = world.join("a", "b")
    b.busy()
    a.send([b"x"] * 10)
    a.crash()
    assert a.refused == 7
    assert not a.blocked


def test_what_piles_up_while_paused_is_found_afterwards(world: World) -> None:
    a, b = world.join("a", "b")
    b.pause()
    a.send([b"x"] * 10)
    world.run(0.5)
    assert not b.delivered
    b.resume()
    assert len(b.delivered) == 10


def test_a_restarted_member_begins_with_nothing(world: World) -> None:
    a, b = world.join("a", "b")
    a.send(b"before")
    world.settle()
    b.restart()
    world.settle()
    a.send(b"after")
    world.settle()
    assert [m.payload for m in b.delivered] == [b"after"]
    assert world.check() == []


def test_one_link_can_be_bad(world: World) -> None:
    a, b, c = world.join("a", "b", "c")
    world.link(a, b).loss = 1.0
    a.send(b"x")
    world.run(0.05)
    assert not b.delivered
    assert c.delivered
    world.link("a", "b").loss = 0.0
    world.settle()
    assert b.delivered


def test_a_slow_link_takes_its_time() -> None:
    world = World(seed=1, spec=presets.lan(), bandwidth=100_000.0)
    a, _ = world.join("a", "b")
    started = world.now
    a.send([bytes(1000)] * 100)
    world.settle()
    assert world.now - started > 1.0


def test_a_world_with_random_addresses_works_alike() -> None:
    world = World(seed=1, spec=presets.lan(), addresses="random")
    a, b = world.join("a", "b")
    assert a.me > 2**32
    a.send(b"x")
    world.settle()
    assert b.delivered[0].sender == a.me


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"loss": 2.0}, "loss"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"addresses": "odd"}, "addresses"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, float], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        World(1, presets.lan(), **settings)  # type: ignore[arg-type]


def test_a_world_that_keeps_nothing_still_counts_and_checks() -> None:
    world = World(seed=1, spec=presets.lan(), keep=False)
    a, b = world.join("a", "b")
    a.send([b"x"] * 1000)
    world.settle()
    assert len(b.delivered) == 1000
    assert world.check() == []


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, "2"])
def test_time_that_never_ends_is_refused(seconds: float) -> None:
    world = World(seed=1, spec=presets.lan())
    world.join("a")
    for run in (world.run, world.settle, lambda s: world.run_until(lambda: False, s)):
        with pytest.raises(LocalError, match="seconds is"):
            run(seconds)


def test_a_list_belongs_to_its_caller_again() -> None:
    world = World(seed=1, spec=presets.lan(), loss=0.2)
    a, b = world.join("a", "b")
    messages: list[bytes | memoryview] = [b"1", b"2", b"3"]
    a.send_many(messages)
    messages.clear()
    world.settle()
    assert [message.payload for message in b.delivered] == [b"1", b"2", b"3"]
    with pytest.raises(TypeError, match="bytes"):
        a.send("text")  # type: ignore[arg-type]
