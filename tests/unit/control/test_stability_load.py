"""Stability under load: rounds come by amount, tables stay small, and nothing is freed too soon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.control.stability import Stability
from ringcast.core.model.address import Address
from ringcast.layers.multicast.nakack3 import NakAck3
from tests.unit.control.tables import A, B, C, group, lows, table
from tests.unit.harness import LATENCY, Net, bad_network, clean, numbered

# --- by amount ----------------------------------------------------------------------------------


def test_bytes_start_a_round_before_the_interval_does() -> None:
    net = group(rounds=Stability(interval=1_000.0, max_bytes=10_000))
    for n in range(50):
        net.members[A].send(numbered(1, n, size=1_000))
        net.run(0.01)
    assert min(lows(net)) >= 30
    assert net.sent["STABLE"] <= 6


def test_a_small_table_does_not_wait_for_the_interval() -> None:
    net = group(spec=NakAck3(capacity=100), rounds=Stability(interval=1_000.0))
    net.members[A].send(numbered(10_000))
    net.run(10.0)
    assert net.members[A].waiting == 0
    assert net.members[C].payloads(A) == numbered(10_000)


def test_a_quarter_of_the_table_is_much_by_messages_and_by_bytes() -> None:
    for spec in (NakAck3(capacity=100), NakAck3(max_bytes=10_000)):
        net = group(spec=spec, rounds=Stability(interval=1_000.0))
        net.members[A].send(numbered(25, size=100))
        net.run(1.0)
        assert lows(net) == [25] * 3


def test_a_round_that_frees_only_idle_senders_is_followed_by_the_next() -> None:
    """C takes what A sent, then what B sent, which waits; the others have nothing new to say."""
    net = group(spec=NakAck3(capacity=20), rounds=Stability(interval=1_000.0))
    net.members[C].is_slow = True
    net.members[A].send(numbered(20))
    net.run(0.1)
    net.members[B].send(numbered(40))
    for _ in range(10):
        net.run(0.1)
        net.members[C].take(5)
    net.run(1.0)
    assert lows(net, A) == [20] * 3
    assert net.members[B].waiting == 0


def test_many_senders_at_the_bound_of_small_tables_all_go_on() -> None:
    net = group(4, spec=NakAck3(capacity=20), rounds=Stability(interval=100.0))
    for address in net.members:
        net.members[address].send(numbered(500))
    net.run(20.0)
    assert all(
        net.members[x].payloads(y) == numbered(500) for x in net.members for y in net.members
    )


def test_memory_stays_flat_under_steady_traffic() -> None:
    net = group(rounds=Stability(max_bytes=20_000))
    most = 0
    for n in range(1_000):
        net.members[A].send(numbered(10, n, size=100))
        net.members[B].send(numbered(10, n, size=100))
        net.run(0.005)
        most = max(most, *(table(net, x).sent.nbytes for x in net.members))
        for x in net.members:
            most = max(most, *(window.nbytes for window in table(net, x).windows.values()))
    assert most <= 60_000
    net.settle(2.0)
    assert lows(net) == [10_000] * 3


def test_members_that_are_behind_in_turn_do_not_go_round_and_round() -> None:
    """B lacks messages of C and C those of B: every round is in vain, for as long as that lasts."""
    net = group(rounds=Stability(interval=0.5, max_bytes=1_000))
    cut_off = {(B, C), (C, B)}
    net.policy = lambda flight: () if (flight.source, flight.target) in cut_off else (LATENCY,)
    for address in net.members:
        net.members[address].send(numbered(100, size=100))
    net.run(10.0)
    assert net.sent["STABLE"] <= 40
    assert net.sent["VOTE"] <= 100
    net.policy = clean
    net.settle(5.0)
    assert lows(net, B) == lows(net, C) == [100] * 3


# --- anything may happen ------------------------------------------------------------------------


def check_nothing_is_lost(net: Net) -> None:
    """Nobody has purged what some member of its view has not delivered."""
    for sender in net.members:
        marks = [
            table(net, x).sent if x == sender else table(net, x).windows[sender]
            for x in net.members
        ]
        assert max(mark.low for mark in marks) <= min(mark.delivered for mark in marks)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.1, 0.4]),
    copies=st.sampled_from([0.0, 0.5]),
    spread=st.sampled_from([0.0, 0.01, 0.4]),
    capacity=st.sampled_from([1, 8, 64, 1_000]),
    max_bytes=st.sampled_from([1, 100, 10_000]),
    discard=st.booleans(),
    bursts=st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(0, 3)), min_size=1, max_size=8
    ),
)
def test_nothing_is_purged_too_soon_and_everything_in_the_end(
    seed: int,
    loss: float,
    copies: float,
    spread: float,
    capacity: int,
    max_bytes: int,
    discard: bool,
    bursts: list[tuple[int, int, int]],
) -> None:
    spec = NakAck3(capacity=capacity, discard_delivered=discard)
    net = group(3, spec, Stability(max_bytes=max_bytes), settle=False)
    net.policy = bad_network(seed, loss, copies, spread)
    counts = dict.fromkeys(net.members, 0)
    for n, count, slow in bursts:
        sender = Address(n)
        for member in net.members.values():
            member.is_slow = member.address == slow
        net.members[sender].send(numbered(count, counts[sender] + 1))
        counts[sender] += count
        net.run(0.2)
        if not discard:
            check_nothing_is_lost(net)
    for member in net.members.values():
        member.is_slow = False
    net.settle(3_600.0)
    for sender, count in counts.items():
        assert all(member.payloads(sender) == numbered(count) for member in net.members.values())
        assert lows(net, sender) == [count] * 3
