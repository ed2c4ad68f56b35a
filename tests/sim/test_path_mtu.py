"""Datagrams fit the path: the least MTU of the view, black holes, an MTU that shrinks."""

from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.events import DatagramsResized
from ringcast.sim import World
from ringcast.sim.engine.member import Member

COUNT = 400


def size_of(member: Member) -> int:
    return member.stack.env.datagram_size.size


def listen(member: Member) -> list[DatagramsResized]:
    heard: list[DatagramsResized] = []
    member.stack.env.listener = lambda event: (
        heard.append(event) if isinstance(event, DatagramsResized) else None
    )
    return heard


def payloads(count: int = COUNT, size: int = 132) -> list[bytes]:
    return [n.to_bytes(4, "big") * (size // 4) for n in range(count)]


def exchange(world: World, sender: Member, messages: list[bytes], seconds: float = 30.0) -> None:
    """Everybody gets these, and nothing is violated."""
    before = {name: len(member.delivered) for name, member in world.members.items()}
    sender.send_many(messages)
    world.settle(seconds)
    for name, member in world.members.items():
        if member.alive:
            assert len(member.delivered) - before[name] == len(messages)
    assert not world.check()


def ethernet(seed: int = 1, mtu: int = 1_472, **settings: object) -> World:
    """Datagrams above the MTU of a link vanish without a word."""
    return World(seed, presets.lan(), mtu=mtu, fragment=False, **settings)  # type: ignore[arg-type]


def test_members_with_small_and_large_mtus_use_the_smallest() -> None:
    world = World(1, presets.lan())
    a, b = world.join("a", "b", mtu=8_972)
    assert [size_of(a), size_of(b)] == [8_972, 8_972]
    (c,) = world.join("c", mtu=1_472)
    assert [size_of(member) for member in (a, b, c)] == [1_472] * 3
    assert [m.stack.env.datagram_size.source for m in (a, b, c)] == ["view", "view", "interface"]
    exchange(world, a, [*payloads(), bytes(300_000)])


def test_datagrams_grow_again_when_the_member_with_the_small_mtu_leaves() -> None:
    world = World(1, presets.lan())
    a, b = world.join("a", "b", mtu=8_972)
    (c,) = world.join("c", mtu=1_472)
    heard = listen(a)
    c.leave()
    world.run(5.0)
    assert [size_of(a), size_of(b)] == [8_972, 8_972]
    assert [(event.former, event.size) for event in heard] == [(1_472, 8_972)]


def test_a_merge_takes_the_smallest_mtu() -> None:
    world = World(1, presets.lan())
    a, b = world.join("a", "b", mtu=8_972)
    world.partition(["a", "b"], ["c"])
    c = world.start("c", mtu=1_472)
    world.run(5.0)
    assert size_of(a) == 8_972
    world.heal()
    world.run_until(lambda: world.united, 30.0)
    assert [size_of(member) for member in (a, b, c)] == [1_472] * 3


def test_a_large_message_that_is_under_way_fits_a_newcomer_with_a_small_mtu() -> None:
    world = ethernet(mtu=8_972)
    a, b = world.join("a", "b", mtu=8_972)
    for name in ("a", "b"):
        world.link(name, "c").mtu = 1_472
    world.network.switch.bandwidth = 2e7
    a.send(bytes(12_000_000))
    world.run(0.2)
    (c,) = world.join("c", mtu=1_472)
    world.settle(60.0)
    assert len(b.delivered) == len(c.delivered) == 1
    assert not world.check()


def test_a_number_of_the_user_is_the_bound_of_that_member() -> None:
    world = World(1, presets.lan())
    (a,) = world.join("a", mtu=8_972)
    (b,) = world.join("b", spec=presets.lan().replace("Wire", mtu=1_300), mtu=8_972)
    assert [size_of(a), size_of(b)] == [1_300, 1_300]
    assert b.stack.env.datagram_size.source == "user"
    assert a.stack.env.datagram_size.source == "view"


@pytest.mark.parametrize("limit", [8_900, 4_000, 1_480, 1_472, 1_300, 1_000])
def test_a_path_that_swallows_large_datagrams_is_found(limit: int) -> None:
    world = ethernet(mtu=8_972)
    a, b, c = world.join("a", "b", "c", mtu=8_972)
    heard = listen(a)
    world.link("a", "c").mtu = limit
    exchange(world, a, [*payloads(), bytes(100_000)])
    world.run(15.0)
    assert limit - 16 <= size_of(a) <= limit
    assert size_of(b) == 8_972
    assert [(event.former, event.members) for event in heard] == [(8_972, (c.me,))]
    assert a.stack.counters["path_lowered"] == 1
    exchange(world, a, payloads())


def test_a_path_is_tried_again_after_a_time_and_when_it_is_mended_used() -> None:
    world = ethernet()
    a, _ = world.join("a", "b", mtu=1_472)
    world.link("a", "b").mtu = 1_300
    exchange(world, a, payloads())
    world.run(5.0)
    assert 1_284 <= size_of(a) <= 1_300
    heard = listen(a)
    world.link("a", "b").mtu = 1_472
    world.run(70.0)
    assert size_of(a) == 1_472
    assert a.stack.env.datagram_size.source == "interface"
    assert [(event.size, event.source) for event in heard] == [(1_472, "interface")]


def test_larger_datagrams_are_tried_when_the_member_behind_the_path_leaves() -> None:
    world = ethernet()
    a, _, c = world.join("a", "b", "c", mtu=1_472)
    world.link("a", "c").mtu = 1_300
    exchange(world, a, payloads())
    world.run(5.0)
    c.leave()
    world.run(5.0)
    assert size_of(a) == 1_472


def test_a_path_that_shrinks_while_messages_are_sent_is_found() -> None:
    world = ethernet(downlink=1e6, queue=100_000)
    a, _ = world.join("a", "b", mtu=1_472)
    heard = listen(a)
    a.send_many(payloads(10_000))
    world.run(1.0)
    assert size_of(a) == 1_472
    world.link("a", "b").mtu = 1_250
    world.settle(60.0)
    world.run(10.0)
    assert 1_234 <= size_of(a) <= 1_250
    assert len(heard) == 1
    assert not world.check()


def test_messages_in_flight_that_fit_no_datagram_any_more_leave_in_pieces() -> None:
    world = ethernet(mtu=8_972)
    a, b = world.join("a", "b", mtu=8_972)
    world.link("a", "b").mtu = 1_400
    exchange(world, a, payloads(50, 8_000))
    a.send_many(payloads(50, 8_000), to=b)
    world.settle(30.0)
    assert len(b.delivered) == 100
    assert world.frames["PATH_PROBE"] > 0


def test_an_interface_that_refuses_large_datagrams_lowers_the_size_at_once() -> None:
    world = ethernet()
    a, b = world.join("a", "b", mtu=1_472)
    heard = listen(a)
    exchange(world, a, payloads())
    a.mtu = 1_272
    exchange(world, a, payloads())
    assert size_of(a) == 1_272
    assert size_of(b) == 1_472
    assert [(event.size, event.source) for event in heard] == [(1_272, "interface")]
    a.mtu = 1_472
    world.run(70.0)
    assert size_of(a) == 1_472


def test_a_path_that_carries_less_than_the_base_size_is_used() -> None:
    world = ethernet()
    a, _ = world.join("a", "b", mtu=1_472)
    world.link("a", "b").mtu = 600
    exchange(world, a, payloads(100, 200))
    world.run(20.0)
    assert 584 <= size_of(a) <= 600


def test_messages_that_all_arrive_cost_one_probe() -> None:
    world = ethernet()
    a, _, _ = world.join("a", "b", "c", mtu=1_472)
    for _ in range(10):
        exchange(world, a, payloads())
        world.run(2.0)
    assert a.stack.counters["path_probes"] == 1
    assert world.frames["PATH_REPLY"] == 2


def test_members_that_send_small_datagrams_do_not_probe() -> None:
    world = ethernet()
    a, _ = world.join("a", "b", mtu=1_472)
    exchange(world, a, payloads(2, 100))
    world.run(20.0)
    assert world.frames["PATH_PROBE"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_chance_losses_are_no_black_hole(seed: int) -> None:
    world = ethernet(seed=seed, loss=0.05)
    a, _, _ = world.join("a", "b", "c", mtu=1_472)
    heard = listen(a)
    for _ in range(10):
        exchange(world, a, payloads())
    assert heard == []
    assert size_of(a) == 1_472


def test_a_number_of_the_user_is_not_probed() -> None:
    spec = presets.lan().replace("Wire", mtu=1_472)
    world = World(1, spec, loss=0.05)
    a, _ = world.join("a", "b")
    exchange(world, a, payloads())
    assert world.frames["PATH_PROBE"] == 0


def test_a_closed_group_fits_its_sealed_datagrams() -> None:
    world = ethernet(mtu=8_972, key=bytes(range(32)))
    a, b = world.join("a", "b", mtu=8_972)
    world.link("a", "b").mtu = 1_400
    exchange(world, a, [*payloads(), bytes(50_000)])
    world.run(5.0)
    assert 1_384 <= size_of(a) <= 1_400
    assert size_of(b) == 8_972


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_groups_on_paths_of_all_sizes_deliver_everything(seed: int) -> None:
    rng = Random(seed)
    world = ethernet(seed=seed, mtu=8_972, loss=rng.choice((0.0, 0.01, 0.03)))
    names, mtus = ["a", "b", "c", "d"], (8_972, 4_000, 1_472, 1_300)
    for name in names[:3]:
        world.join(name, mtu=rng.choice(mtus))
    for source in names:
        for target in names:
            world.link(source, target).mtu = rng.choice((8_972, 8_972, 1_472, 1_250))
    for name in names[:3]:
        world.members[name].send_many([bytes(rng.randrange(3_000)) for _ in range(200)])
    world.run(rng.uniform(0.0, 2.0))
    world.join("d", mtu=rng.choice(mtus))
    world.members["b"].crash()
    world.link("a", "c").mtu = 1_230
    for name in ("a", "c", "d"):
        world.members[name].send_many([bytes(rng.randrange(20_000)) for _ in range(100)])
    world.settle(300.0)
    assert not world.check()
