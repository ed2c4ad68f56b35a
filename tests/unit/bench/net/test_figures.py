"""Figures of a run on a bridge: rates, overhead, use of links, fairness, views."""

import pytest

from ringcast_bench.job import Job, Report
from ringcast_bench.messages import LARGE
from ringcast_bench.net.figures import NetRun, between, jain, measure, rate_of
from ringcast_bench.net.network import MBIT, LinkChange, Network


def sender(size: int = 1_000) -> NetRun:
    job = Job(contestant="ringcast", role="sender", size=size)
    return NetRun(job, {"began": 10.0, "samples": [{"at": 10.0, "received": 0, "view": 4}]})


def receiver(*counts: int, size: int = 1_000, lenient: bool = False, view: int = 4) -> NetRun:
    """A receiver with one sample per second."""
    job = Job(contestant="ringcast", role="receiver", size=size, lenient=lenient)
    samples: list[Report] = [
        {"at": 10.0 + n, "received": count, "view": 4, "suspected": 0}
        for n, count in enumerate(counts)
    ]
    samples[-1] |= {"view": view, "suspected": view - 4}
    return NetRun(job, {"began": 10.0, "samples": samples})


def test_the_slowest_receiver_that_counts_gives_the_rate() -> None:
    group = [sender(), receiver(0, 50, 100), receiver(0, 40, 80), receiver(0, 1, 2, lenient=True)]
    assert rate_of(group) == pytest.approx(40)
    assert rate_of(group[:2], from_=0.5) == pytest.approx(50)


def test_large_messages_count_up_to_the_last_arrival() -> None:
    assert rate_of([sender(LARGE), receiver(0, 0, 1, 1, 1, size=LARGE)]) == pytest.approx(0.5)
    assert rate_of([sender(LARGE), receiver(0, 0, 0, size=LARGE)]) == 0


def test_overhead_use_of_the_link_views_and_suspicions() -> None:
    network = Network(rate=20 * MBIT, sender_rate=1 * MBIT)
    groups = [[sender(), receiver(0, 50, 100), receiver(0, 50, 100, view=6)]]
    figures = measure(network, groups, sent=150_000, seconds=2.0)
    assert figures["overhead"] == pytest.approx(1.5)
    assert figures["used"] == pytest.approx(50 * 8_000 / 1e6)
    assert figures["views"] == 2
    assert figures["suspicions"] == 2


def test_nothing_received_is_a_figure_too() -> None:
    figures = measure(Network(), [[sender(), receiver(0, 0)]], sent=5_000, seconds=1.0)
    assert figures["rate"] == 0
    assert figures["overhead"] == pytest.approx(5)


def test_two_groups_are_compared() -> None:
    groups = [[sender(), receiver(0, 300)], [sender(), receiver(0, 100)]]
    figures = measure(Network(rate=MBIT), groups, sent=0, seconds=1.0)
    assert figures["rate"] == pytest.approx(400)
    assert figures["share"] == pytest.approx(3)
    assert figures["jain"] == pytest.approx(0.8)


def test_jains_index_of_fair_and_unfair_shares() -> None:
    assert jain([5, 5]) == pytest.approx(1)
    assert jain([5, 0]) == pytest.approx(0.5)
    assert jain([0, 0]) == 0


def test_the_use_of_a_link_after_its_changes() -> None:
    changes = (LinkChange(at=1 / 3, rate=8_000), LinkChange(at=2 / 3, rate=80_000))
    # 10 per second, then nothing and 1 per second, then nothing and 10 per second.
    counts = (0, 10, 20, 30, 40, 40, 40, 41, 42, 42, 42, 52, 62)
    group = [sender(), receiver(*counts)]
    figures = measure(Network(rate=80_000, changes=changes), [group], sent=0, seconds=12.0)
    assert figures["used_down"] == pytest.approx(1)
    assert figures["used_up"] == pytest.approx(1)
    assert figures["late"] == pytest.approx(5)


def test_messages_between_two_times() -> None:
    series = [(0.0, 0.0), (1.0, 10.0), (2.0, 30.0)]
    assert between(series, 1.0, 2.0) == pytest.approx(20)
    assert between(series, 5.0, 5.0) == 0


def test_the_narrowest_link_that_a_sender_waits_for() -> None:
    assert Network().narrowest == 0
    assert Network(rate=9, last_rate=5).narrowest == 5
    assert Network(rate=9, last_rate=5, apart=True).narrowest == 9
