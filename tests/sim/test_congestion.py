"""Congestion control on simulated networks: the share of the link, what it costs, and who shares.

The sender always has more to send. Messages of 1,340 bytes are one packet each.
"""

from random import Random
from typing import Any

import pytest

from ringcast import presets
from ringcast.layers.wire import Wire
from ringcast.services.state_requester import Stage
from ringcast.sim import World
from ringcast.sim.engine.member import Member

SIZE = 1_340
PACKET = 1_420
"""Bytes of a datagram with one message, about."""
MBIT = 125_000.0


def world(preset: str = "lan", /, **network: Any) -> World:
    spec = presets.named(preset).replace(Wire(mtu=1_472))
    return World(spec=spec, keep=False, **{"seed": 1, **network})


def feed(member: Member, count: int) -> None:
    for _ in range(count // 200 + 1):
        member.send([bytes(SIZE)] * 200)


def rate(on: World, receiver: Member, seconds: float) -> float:
    """Bytes per second that arrive, datagrams counted whole."""
    before, began = len(receiver.delivered), on.now
    on.run(seconds)
    return (len(receiver.delivered) - before) * PACKET / (on.now - began)


def overhead_marks(sender: Member) -> tuple[int, int]:
    """Messages that were sent and sent again up to now."""
    return sender.probe.high, sender.stack.counters["resent"]


def overhead(sender: Member, since: tuple[int, int] = (0, 0)) -> float:
    """Messages that were sent, for each that was sent for the first time."""
    sent, resent = overhead_marks(sender)
    return 1 + (resent - since[1]) / (sent - since[0])


def assert_calm(on: World) -> None:
    """No member was suspected, the view stays, and every guarantee held."""
    views = {member.view for member in on.members.values()}
    assert len(views) == 1
    assert all(len(member.views) <= len(on.members) for member in on.members.values())
    assert not on.frames["SUSPECT"]
    assert on.check() == []


@pytest.mark.parametrize("queue", [64_000, 300_000])
@pytest.mark.parametrize(
    ("limit", "mbit", "seconds"),
    [
        pytest.param("downlink", 1_000, 0.8, marks=pytest.mark.slow),
        ("downlink", 200, 0.4),
        ("downlink", 20, 2.0),
        ("downlink", 2, 6.0),
        ("bandwidth", 200, 0.4),
        ("bandwidth", 20, 2.0),
    ],
    ids=str,
)
def test_a_narrow_link_is_used_without_waste_from_the_start(
    limit: str, queue: int, mbit: int, seconds: float
) -> None:
    net = world("lan", queue=queue, **{limit: mbit * MBIT})
    a, b = net.join("a", "b")
    feed(a, int(seconds * 1.3 * mbit * MBIT / PACKET))
    assert rate(net, b, seconds) >= 0.85 * mbit * MBIT
    assert overhead(a) <= 1.15
    assert_calm(net)


@pytest.mark.parametrize(
    ("delay", "queue", "before", "seconds"),
    [
        pytest.param(0.001, 300_000, 0.3, 0.2, marks=pytest.mark.slow),
        pytest.param(0.02, 300_000, 0.8, 0.4, marks=pytest.mark.slow),
        pytest.param(0.1, 25_000_000, 3.0, 0.5, marks=pytest.mark.slow),
    ],
)
def test_a_long_path_of_a_gigabit_is_filled_where_the_window_allows_it(
    delay: float, queue: int, before: float, seconds: float
) -> None:
    """docs/networks.md has the formula for the window; short queues end slow start early."""
    link = 1_000 * MBIT
    flight = int(max(4_000_000, 1.5 * link * 2 * delay))
    spec = presets.lan().replace(Wire(mtu=1_472))
    spec = spec.replace(
        "NakAck4", flight_bytes=flight, max_bytes=2 * flight, capacity=4 * flight // SIZE
    )
    net = World(seed=1, spec=spec, keep=False, downlink=link, delay=(delay, delay), queue=queue)
    a, b = net.join("a", "b")
    feed(a, int((before + seconds) * 1.3 * link / PACKET))
    net.run(before)
    assert rate(net, b, seconds) >= 0.8 * link
    assert overhead(a) <= 1.15
    assert_calm(net)


@pytest.mark.parametrize("queue", [64_000, 300_000])
def test_a_sender_that_is_woken_late_uses_a_narrow_link(queue: int) -> None:
    net = world(queue=queue, downlink=20 * MBIT)
    a, b, _ = net.join("a", "b", "c")
    feed(a, 4_500)
    before, began = len(b.delivered), net.now
    while net.now < began + 2.0:
        a.pause()
        net.run(0.015)
        a.resume()
        net.run(0.002)
    used = (len(b.delivered) - before) * PACKET / (net.now - began)
    assert used >= 0.85 * 20 * MBIT
    assert overhead(a) <= 1.15
    assert_calm(net)


def test_bursts_of_a_sender_that_is_woken_late_grow_to_what_a_queue_holds() -> None:
    net = world(queue=300_000, downlink=200 * MBIT)
    a, b, _, _ = net.join("a", "b", "c", "d")
    for _ in range(110):
        a.send([bytes(1_000)] * 250)
    began = settled = net.now
    before = 0
    while net.now < began + 0.8:
        a.pause()
        net.run(0.006)
        a.resume()
        net.run(0.001)
        if net.now < began + 0.4:
            before, settled = len(b.delivered), net.now
    used = (len(b.delivered) - before) * 1_000 / (net.now - settled)
    assert used >= 0.8 * 200 * MBIT
    assert_calm(net)


@pytest.mark.slow
def test_receivers_that_are_woken_late_do_not_make_a_full_queue_look_like_chance() -> None:
    """Their acks bunch up, so that the rate is found too high, and a standing queue overflows."""
    net = world(queue=300_000, bandwidth=200 * MBIT)
    net.network.set_all("delay", (0.0001, 0.0002))
    a, b, c, d = net.join("a", "b", "c", "d")
    for _ in range(150):
        a.send([bytes(1_000)] * 250)
    draw, asleep = Random(1), dict[str, float]()
    began = settled = net.now
    before = 0
    while net.now < began + 1.2:
        for member in (b, c, d):
            if member.name in asleep:
                if net.now >= asleep[member.name]:
                    member.resume()
                    del asleep[member.name]
            elif draw.random() < 0.1:
                member.pause()
                asleep[member.name] = net.now + draw.random() * 0.01
        net.run(0.001)
        if net.now < began + 0.9:
            before, settled = len(b.delivered), net.now
    used = (len(b.delivered) - before) * 1_000 / (net.now - settled)
    assert used >= 0.85 * 200 * MBIT
    assert a.stack.counters["resent_bytes"] <= 0.15 * a.probe.high * 1_000


def test_messages_by_stability_keep_to_a_narrow_link() -> None:
    net = world("stable", downlink=20 * MBIT, queue=64_000)
    a, b, _ = net.join("a", "b", "c")
    feed(a, 4_000)
    assert rate(net, b, 2.0) >= 0.85 * 20 * MBIT
    assert overhead(a) <= 1.15
    assert_calm(net)


def test_large_messages_keep_to_a_narrow_link() -> None:
    net = world("bulk", downlink=20 * MBIT, queue=64_000)
    a, b, c = net.join("a", "b", "c")
    count, size = 4, 1_500_000
    for _ in range(count):
        a.send(bytes(size))
    least = count * size * (PACKET / SIZE) / (20 * MBIT)
    net.run_until(lambda: len(b.delivered) == len(c.delivered) == count, least / 0.85)
    assert a.stack.counters["resent_bytes"] <= 0.15 * count * size
    assert_calm(net)


def test_messages_to_one_member_keep_to_a_narrow_link() -> None:
    net = world(downlink=20 * MBIT, queue=64_000)
    a, b, _ = net.join("a", "b", "c")
    count = 4_000
    for _ in range(count // 200):
        a.send([bytes(SIZE)] * 200, to=b)
    least = count * PACKET / (20 * MBIT)
    net.run_until(lambda: len(b.delivered) == count, least / 0.85)
    assert a.stack.counters["resent"] <= 0.15 * count
    assert_calm(net)


def test_a_state_transfer_keeps_to_a_narrow_link() -> None:
    net = world(downlink=20 * MBIT, queue=64_000)
    a, b = net.join("a", "b")
    size = 5_000_000
    for member in (a, b):
        member.service.provide(lambda: [bytes(size)])
    late = net.start("c", state=True)
    net.run_until(lambda: late.view is not None and len(late.view) == 3, 10.0)
    net.run_until(lambda: late.service.stage is Stage.TAKEN, size * (PACKET / SIZE) / (17 * MBIT))
    assert a.stack.counters["resent_bytes"] + b.stack.counters["resent_bytes"] <= 0.15 * size
    assert_calm(net)


@pytest.mark.parametrize("burst", [1, 200])
@pytest.mark.parametrize("limit", ["downlink", "bandwidth"])
def test_a_fifth_of_all_packets_lost_does_not_spiral_down(limit: str, burst: int) -> None:
    net = world("lan", queue=64_000, **{limit: 20 * MBIT})
    a, b, _ = net.join("a", "b", "c")
    net.network.set_all("packet_loss", 0.2)
    for _ in range(4_000 // burst):
        a.send([bytes(SIZE)] * burst)
    net.run(0.5)
    assert rate(net, b, 2.5) >= 0.25 * 20 * MBIT
    assert_calm(net)


def test_a_rate_that_changes_is_followed() -> None:
    net = world(queue=300_000, downlink=200 * MBIT)
    a, b = net.join("a", "b")
    feed(a, 40_000)
    net.run(0.2)
    net.network.switch.downlink = 20 * MBIT
    net.run(2.0)
    assert rate(net, b, 1.0) >= 0.8 * 20 * MBIT
    net.network.switch.downlink = 200 * MBIT
    net.run(1.2)
    assert rate(net, b, 0.3) >= 0.8 * 200 * MBIT
    assert_calm(net)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("limit", ["downlink", "bandwidth"])
def test_a_link_that_shrinks_under_a_full_window_delivers_again_soon(limit: str, seed: int) -> None:
    """What was in flight is lost on the way to all receivers, and only the sender has it."""
    net = world(seed=seed, queue=300_000, delay=(0.0001, 0.0002), **{limit: 200 * MBIT})
    a, b, _, _ = net.join("a", "b", "c", "d")
    for _ in range(96):
        a.send([bytes(1_000)] * 250)
    net.run(0.5)
    setattr(net.network.switch, limit, 20 * MBIT)
    net.run(2.5)
    assert rate(net, b, 1.0) >= 0.8 * 20 * MBIT
    assert_calm(net)


@pytest.mark.parametrize(("loss", "share"), [(0.001, 0.8), (0.01, 0.6), (0.05, 0.3)])
def test_packet_loss_costs_little_more_than_what_is_lost(loss: float, share: float) -> None:
    rates, costs = [], []
    for chance in (0.0, loss):
        net = world(bandwidth=200 * MBIT, queue=300_000)
        a, b, _ = net.join("a", "b", "c")
        net.network.set_all("packet_loss", chance)
        feed(a, 6_000)
        net.run(0.1)
        started = overhead_marks(a)
        rates.append(rate(net, b, 0.2))
        costs.append(overhead(a, started))
        assert_calm(net)
    assert rates[1] >= share * rates[0]
    assert costs[1] <= 1.2 * (1 + 2 * loss)


@pytest.mark.parametrize(
    ("loss", "share"), [(0.01, 0.6), pytest.param(0.05, 0.4, marks=pytest.mark.slow)]
)
def test_packet_loss_and_a_sender_that_is_woken_late_leave_most_of_the_path(
    loss: float, share: float
) -> None:
    """Four processes on two cores: each gets its turn late, and sockets are the queues."""
    net = world(downlink=200 * MBIT, queue=8_000_000)
    a, b, _, _ = net.join("a", "b", "c", "d")
    net.network.set_all("packet_loss", loss)
    feed(a, 22_000)
    began = settled = net.now
    before = 0
    while net.now < began + 1.0:
        a.pause()
        net.run(0.015)
        a.resume()
        net.run(0.001)
        if net.now < began + 0.6:
            before, settled = len(b.delivered), net.now
    used = (len(b.delivered) - before) * PACKET / (net.now - settled)
    assert used >= share * 200 * MBIT
    assert_calm(net)


@pytest.mark.slow
def test_the_rate_is_searched_for_where_a_fifth_of_all_packets_is_lost() -> None:
    """Messages are packed while little is lost, and a start that loses much ends early."""
    spec = presets.lan().replace(Wire(mtu=1_472))
    found = 0
    for seed in (1, 2, 3):
        net = World(
            seed=seed,
            spec=spec,
            keep=False,
            downlink=200 * MBIT,
            queue=8_000_000,
            delay=(0.0001, 0.0001),
        )
        a, b, _, _ = net.join("a", "b", "c", "d")
        net.network.set_all("packet_loss", 0.2)
        for _ in range(120):
            a.send([bytes(1_000)] * 250)
        net.run(1.0)
        before = len(b.delivered)
        net.run(1.0)
        found += len(b.delivered) - before
        assert_calm(net)
    assert found >= 3 * 2_500


def test_an_outage_is_recovered_from() -> None:
    net = world(bandwidth=20 * MBIT, queue=64_000)
    a, b = net.join("a", "b")
    feed(a, 4_000)
    net.run(0.5)
    net.partition(["a"], ["b"])
    net.run(0.5)
    net.heal()
    net.run(0.5)
    assert rate(net, b, 1.0) >= 0.8 * 20 * MBIT
    assert_calm(net)
