"""The window and the pace, from acks and requests."""

from random import Random

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.reliable.congestion import INITIAL_BYTES, WINDOW_BYTES_MIN, Congestion
from ringcast.core.reliable.phases import CALM
from ringcast.core.stack.env import Env
from ringcast.core.wire.outbox import TRAIN_MAX

A, B, C = (Address(n) for n in (1, 2, 3))
BOUND = 4_000_000


def congestion() -> tuple[Env, Congestion]:
    env = Env(Peer(A, "a", ""), Random(1), mtu=1_472)
    control = Congestion(env, BOUND)
    control.join(B, 0)
    control.join(C, 0)
    return env, control


def carry(
    env: Env,
    control: Congestion,
    rate: float,
    steps: int,
    first: int = 1,
    round_trip: float = 0.002,
) -> int:
    """A sender that is always limited; both receivers ack what a path of this rate carries."""
    for _ in range(steps):
        count = int(rate * round_trip / 1_000)
        control.on_sent(first, 1_000 * count)
        control.on_limited()
        env.now += round_trip
        for member in (B, C):
            control.on_arrived(member, first + count - 1, first + count - 1, 1_000.0)
        first += count
    return first


def test_the_window_grows_with_acks_up_to_the_bound_and_nothing_is_paced() -> None:
    env, control = congestion()
    assert control.window == INITIAL_BYTES
    carry(env, control, 1e9, 10)
    assert control.window == BOUND
    assert not control.is_paced


def test_a_loss_starts_pacing_at_the_delivery_rate_of_the_slowest_path() -> None:
    env, control = congestion()
    carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)
    assert control.is_paced
    assert 9e6 < control.rate < 11e6
    assert WINDOW_BYTES_MIN <= control.window < 500_000


@pytest.mark.parametrize(
    ("rate", "nbytes"), [(1e9, TRAIN_MAX), (200e6, 50_000), (10e6, 22 * 1_472)]
)
def test_what_leaves_at_once_is_a_short_time_of_the_slowest_path(rate: float, nbytes: int) -> None:
    env, control = congestion()
    assert control.train_bytes == TRAIN_MAX
    carry(env, control, rate, 20)
    assert 0.9 * nbytes <= control.train_bytes <= 1.1 * nbytes


def test_a_few_messages_that_wait_for_repairs_do_not_make_the_path_slow() -> None:
    env, control = congestion()
    control.on_sent(1, 30_000)
    control.on_limited()
    env.now += 0.02
    control.on_arrived(B, 28, 30, 1_000.0)
    control.on_lost(B, 2, 1_000.0)
    for arrived in (29, 30):
        env.now += 0.1
        control.on_arrived(B, arrived, 30, 1_000.0)
    assert control.rate > 500_000


def test_what_is_sent_and_sent_again_spends_the_budget() -> None:
    env, control = congestion()
    carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)
    control.on_repaired(100_000)
    assert control.budget() == 0
    assert env.now < control.ready_at < env.now + 0.02
    env.now = control.ready_at
    assert control.budget() > 0


def test_a_slower_path_lowers_the_rate_within_a_second() -> None:
    env, control = congestion()
    first = carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)
    first = carry(env, control, 1e6, 300, first)
    assert control.rate > 9e6, "a pause of a process is no slower path"
    carry(env, control, 1e6, 300, first)
    assert control.rate < 1.1e6


def test_a_path_that_loses_much_lowers_the_rate_with_the_next_samples() -> None:
    env, control = congestion()
    first = carry(env, control, 10e6, 20)
    control.on_lost(C, 500, 1_000.0)
    first = carry(env, control, 1e6, 10, first)
    assert control.rate > 4e6, "one such sample may be a receiver that gets no CPU"
    first = carry(env, control, 10e6, 300, first)
    for _ in range(4):
        control.on_lost(C, 500, 1_000.0)
        first = carry(env, control, 1e6, 10, first)
    assert control.rate < 1.6e6


@pytest.mark.parametrize(
    ("lost", "round_trips", "gain"), [(5, 2.0, 2.0), (300, 2.0, 0.75), (300, 1.0, 2.0)]
)
def test_the_start_ends_when_much_of_the_window_is_lost(
    lost: int, round_trips: float, gain: float
) -> None:
    """What was lost before the start is requested up to one and a half round trips later."""
    env, control = congestion()
    carry(env, control, 10e6, 2, round_trip=0.02)
    control.on_lost(C, 1, 1_000.0)
    env.now += round_trips * control.round_trip(C)
    control.on_lost(C, lost, 1_000.0)
    assert 0.7 * gain * control.rate < pace(control) < 1.3 * gain * control.rate


def pace(control: Congestion) -> float:
    """Bytes per second at which is sent."""
    control.on_repaired(2 * control.budget())
    before = control.ready_at
    control.on_repaired(40_000)
    return 40_000 / (control.ready_at - before)


def test_a_path_that_was_full_at_its_first_loss_is_not_searched() -> None:
    """The last round trip says that a queue was full: the rate is all that the path carries."""
    env, control = congestion()
    first = carry(env, control, 1e6, 20)
    carry(env, control, 1e6, 1, first, round_trip=0.06)
    control.on_lost(C, 1, 1_000.0)
    assert 0.9e6 < control.rate < 1.1e6
    assert pace(control) < control.rate


def test_a_clear_path_whose_round_trip_grows_keeps_its_queue_short() -> None:
    env, control = congestion()
    first = carry(env, control, 1e6, 30)
    grown = control.window
    control.on_sent(first, 60_000)
    control.on_limited()
    env.now += 0.06
    for member in (B, C):
        control.on_arrived(member, first + 59, first + 59, 1_000.0)
    assert control.window < grown
    assert control.window <= 1.1 * 1e6 * 0.052


def test_probes_that_find_nothing_get_smaller_and_those_that_do_get_larger() -> None:
    env, control = congestion()
    first = carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)

    def highest(rate: float, seconds: float, lost: int) -> float:
        """The highest pace, in relation to the rate, while the path carries this, and probes lose
        as many messages."""
        nonlocal first
        found, until = 0.0, env.now + seconds
        while env.now < until:
            control.on_lost(C, lost * (control._phases.phase < CALM), 1_000.0)
            env.now = max(env.now, control.ready_at)
            control.budget()
            first = carry(env, control, min(rate, control._phases.gain * control.rate), 1, first)
            found = max(found, control._phases.gain)
        return found

    highest(10e6, 3.0, 2)
    assert 1.05 < highest(10e6, 1.0, 2) < 1.08
    assert highest(40e6, 1.5, 0) > 1.19
    assert control.rate > 30e6


@pytest.mark.parametrize(("lost", "most"), [(0, 1.0), (10, 0.95)])
def test_cruising_that_loses_is_slower(lost: int, most: float) -> None:
    """Each receiver has requested as many of 100, but for what follows a phase that drains."""
    env, control = congestion()
    first = carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)
    until = env.now + 3.0
    while env.now < until:
        for member in (B, C):
            control.on_lost(member, lost, 1_000.0, 0)
        for _ in range(5):
            env.now = max(env.now, control.ready_at)
            control.budget()
            first = carry(env, control, 9e6, 1, first)
    assert control._phases.cruise < most
    assert control._phases.cruise > 0.98 or lost


def test_a_receiver_that_left_no_longer_counts() -> None:
    env, control = congestion()
    carry(env, control, 10e6, 20)
    control.on_lost(C, 1, 1_000.0)
    control.leave(C)
    assert not control.is_paced


def test_acks_that_are_read_late_and_several_at_once_do_not_raise_the_rate() -> None:
    """A path carries 10 messages per millisecond; now and then the sender gets no CPU for 6 ms."""
    env, control = congestion()
    first = carry(env, control, 10e6, 20)
    control.on_lost(B, 1, 1_000.0)
    unread, highest = list[int](), 0.0
    for step in range(1, 1_000):
        control.on_sent(first, 20_000)
        control.on_limited()
        env.now += 0.002
        first += 20
        unread.append(first - 1)
        if step % 11 < 3:
            continue
        for arrived in unread:
            for member in (B, C):
                control.on_arrived(member, arrived, first - 1, 1_000.0)
        unread.clear()
        highest = max(highest, control.rate) if step > 600 else 0.0
    assert highest < 11e6


def test_a_view_of_many_members_compares_the_paths_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once per member would be quadratic for each, and cubic for a group that forms."""
    _, control = congestion()
    compared: list[float] = []
    monkeypatch.setattr(Congestion, "_update", lambda self, now: compared.append(now))
    control.change([B], [Address(n) for n in range(10, 1_010)], 7)
    assert len(compared) == 1
    assert control.paths.keys() == {C, *range(10, 1_010)}
