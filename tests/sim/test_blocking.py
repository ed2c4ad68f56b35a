"""Bounded blocking: past its time a message goes out, or its caller hears of it; never silence."""

import pytest

from ringcast import presets
from ringcast.core.model.batch import Batch
from ringcast.errors import ConfigError, TooLarge
from ringcast.layers.flow.layer import Flow
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.sim import Member, World
from ringcast.spec import StackSpec

TIMES = "1000:10,10000:100"
WINDOW = 10


def windowed(**settings: object) -> StackSpec:
    """A stack whose window is full soon."""
    return presets.lan().replace(NakAck4(capacity=WINDOW, **settings))  # type: ignore[arg-type]


def trio(spec: StackSpec) -> tuple[World, Member, Member, Member]:
    world = World(seed=1, spec=spec)
    a, b, c = world.join("a", "b", "c")
    return world, a, b, c


def sizes(member: Member) -> list[int]:
    return [len(message.payload) for message in member.delivered]


@pytest.mark.parametrize("to_group", [True, False])
def test_past_its_time_a_message_that_finds_the_window_full_is_given_back(to_group: bool) -> None:
    spec = windowed(max_block_times=TIMES).replace("Unicast", capacity=WINDOW)
    world, a, _b, c = trio(spec)
    to = None if to_group else c
    c.busy()
    a.send([bytes(1)] * WINDOW, to)
    a.send(bytes(1_000), to)
    a.send(bytes(5_000), to)
    a.send(bytes(20_000), to)
    began = world.now
    world.run_until(lambda: len(a.timeouts) == 1, 1.0)
    assert world.now - began == pytest.approx(0.01)
    world.run_until(lambda: len(a.timeouts) == 2, 1.0)
    assert world.now - began == pytest.approx(0.1)
    world.run(10.0)
    assert a.queued == 1  # It is larger than any step, and waits.
    for timeout, seconds in zip(a.timeouts, ("0.01", "0.1"), strict=True):
        assert (timeout.sent, timeout.waits_for) == (0, ("c",))
        assert str(timeout) == f"not sent within {seconds} seconds, waiting for c"
    c.idle()
    world.settle()
    assert sizes(c) == [1] * WINDOW + [20_000]
    assert world.check() == []


def test_a_run_is_given_back_in_part_and_says_how_much_was_sent() -> None:
    world, a, _b, c = trio(windowed(max_block_times=TIMES))
    c.busy()
    a.send([bytes(500)] * 25)
    world.run(1.0)
    assert [timeout.sent for timeout in a.timeouts] == [WINDOW]
    assert not a.blocked
    c.idle()
    a.send(bytes(7))
    world.settle()
    assert sizes(c) == [500] * WINDOW + [7]
    assert world.check() == []


def test_a_long_run_that_makes_progress_has_all_the_time_it_needs() -> None:
    world, a, _b, c = trio(windowed(max_block_times=TIMES))
    a.send([bytes(500)] * 2_000)
    world.settle()
    assert world.now > 0.1
    assert (a.timeouts, sizes(c)) == ([], [500] * 2_000)


def test_without_the_setting_a_message_waits_as_long_as_it_takes() -> None:
    world, a, _b, c = trio(windowed())
    c.busy()
    a.send([bytes(500)] * 25)
    world.run(60.0)
    assert (a.timeouts, a.queued) == ([], 25 - WINDOW)


def test_a_full_table_gives_back_as_a_full_window_does() -> None:
    table = NakAck3(capacity=WINDOW, max_block_times=TIMES)
    world, a, _b, c = trio(presets.stable().replace(table))
    c.busy()
    a.send([bytes(500)] * 25)
    world.run(1.0)
    assert [timeout.sent for timeout in a.timeouts] == [WINDOW]


def test_past_its_time_a_message_without_credits_goes_out_unless_the_window_is_full() -> None:
    flow = Flow(max_credits=1_000, max_block_times="10000:20")
    world, a, b, c = trio(windowed(max_block_times="10000:200").insert(flow))
    c.busy()
    a.send([bytes(500)] * 25)
    world.run(0.15)
    assert 3 < len(b.delivered) < WINDOW
    world.run(5.0)
    # What the window holds went out, one after the other; the rest is given back.
    assert sizes(b) == [500] * WINDOW
    assert [timeout.sent for timeout in a.timeouts] == [WINDOW]
    c.idle()
    world.settle()
    assert sizes(c) == [500] * WINDOW
    assert world.check() == []


def test_what_can_never_be_sent_is_refused_though_the_window_is_full() -> None:
    world, a, _b, c = trio(windowed().without("Fragment"))
    c.busy()
    a.send([bytes(500)] * 25)
    assert a.blocked
    with pytest.raises(TooLarge, match=r"100,000 bytes is larger than the 59,\d\d\d"):
        a.send(bytes(100_000))
    with pytest.raises(TooLarge, match="100,000"):
        a.send(bytes(100_000), c)
    assert a.queued == 25 - WINDOW
    c.idle()
    world.settle()
    assert sizes(c) == [500] * 25


def test_what_is_larger_than_the_credits_is_refused_though_others_wait_for_them() -> None:
    spec = presets.stable().without("Fragment").replace(Flow(max_credits=2_000))
    world, a, _b, c = trio(spec)
    c.busy()
    a.send([bytes(500)] * 25)
    assert a.blocked
    with pytest.raises(TooLarge, match="2,001 bytes is larger than the 2,000"):
        a.send(bytes(2_001))
    c.idle()
    world.settle()
    assert sizes(c) == [500] * 25


@pytest.mark.parametrize("text", ["10:5,5:10", "10", "10:5,20:5", "x:1"])
def test_times_that_do_not_rise_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"NakAck4.max_block_times"):
        NakAck4(max_block_times=text)


# --- what is counted ------------------------------------------------------------------------------


def test_the_time_that_sends_wait_is_counted_by_reason() -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(capacity=16)))
    a, b = world.join("a", "b")
    b.busy()
    a.send_many([b"x"] * 40)
    world.run(2.0)
    b.idle()
    world.run(1.0)
    assert len(b.delivered) == 40
    assert 1_900 <= a.stack.counters["blocked_ms_window"] <= 2_200
    assert "blocked_ms_view_change" not in a.stack.counters


def test_messages_past_the_window_are_counted_as_dropped() -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(capacity=16)))
    a, b = world.join("a", "b")
    window = next(part for part in b.stack.parts if isinstance(part, NakAck4Layer)).windows[a.me]
    window.put(Batch(a.me, [b"x"] * 3, 3, first=window.high + 15))
    assert b.stack.counters["dropped_past_window"] == 1
    counters = b.stats()["counters"]
    assert isinstance(counters, dict)
    assert counters["dropped_past_window"] == 1
