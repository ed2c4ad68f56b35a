"""Figures: rates and costs of a run, medians of several, what disturbed and failed runs do."""

import pytest

from ringcast_bench.figures import Sample, measure, percentiles, ratio, summarize
from ringcast_bench.job import Job, Report
from ringcast_bench.messages import LARGE


def job(role: str, index: int, size: int = 1_000) -> Job:
    return Job(contestant="raw-multicast", role=role, index=index, size=size, count=100)


def used(cpu: float, grown: float = 0.0) -> Report:
    return {"cpu": cpu, "rss": 30e6 + grown, "grown": grown}


def test_the_rate_is_that_of_the_slowest_receiver() -> None:
    jobs = [job("sender", 0), job("receiver", 1), job("receiver", 2)]
    played: list[Report] = [
        {"began": 10.0},
        {"count": 100, "ended": 10.5},
        {"count": 100, "ended": 12.0},
    ]
    figures = measure(jobs, played, [used(0.001), used(0.002), used(0.004)])
    assert figures["rate"] == pytest.approx(50)
    assert figures["bytes"] == pytest.approx(50_000)
    assert figures["sender_cpu_us"] == pytest.approx(10)
    assert figures["receiver_cpu_us"] == pytest.approx(30)
    assert figures["receiver_rss"] == 30e6
    assert "sender_messages" not in figures


def test_members_that_all_send_count_what_they_have_of_all() -> None:
    jobs = [job("both", index) for index in range(2)]
    played: list[Report] = [
        {"began": 1.0, "ended": 2.0, "count": 200},
        {"began": 1.5, "ended": 3.0, "count": 200},
    ]
    figures = measure(jobs, played, [used(0.1), used(0.1)])
    assert figures["rate"] == pytest.approx(100)
    assert figures["sender_cpu_us"] == figures["receiver_cpu_us"] == pytest.approx(500)


def test_memory_for_large_messages_is_counted_in_messages() -> None:
    jobs = [job("sender", 0, LARGE), job("receiver", 1, LARGE)]
    played: list[Report] = [{"began": 0.0}, {"count": 100, "ended": 1.0}]
    figures = measure(jobs, played, [used(1.0, grown=0.5 * LARGE), used(1.0)])
    assert figures["sender_messages"] == pytest.approx(1.5)


def test_an_idle_member_is_judged_by_the_worst() -> None:
    jobs = [job("idle", index) for index in range(2)]
    played: list[Report] = [{"idle": 2.0}, {"idle": 2.0}]
    figures = measure(jobs, played, [used(0.02), used(0.01, grown=5e6)])
    assert figures == {"cpu_percent": pytest.approx(1.0), "rss": 35e6}


def test_round_trips_become_quantiles() -> None:
    assert percentiles([n / 100 for n in range(100)]) == {"p50": 0.5, "p99": 0.99}
    assert percentiles([3.0]) == {"p50": 3.0, "p99": 3.0}


def sample(rate: float, others: float = 0.0, failed: str = "") -> Sample:
    return Sample(figures={} if failed else {"rate": rate}, other_cores=others, failed=failed)


def test_the_median_counts() -> None:
    assert summarize([sample(1), sample(100), sample(5)]).figures == {"rate": 5}


def test_disturbed_runs_are_left_out_where_there_are_others() -> None:
    some = summarize([sample(1, others=0.9), sample(7, others=0.1), sample(2, others=0.9)])
    assert some.figures == {"rate": 7}
    assert not some.is_disturbed
    every = summarize([sample(1, others=0.9), sample(3, others=0.3), sample(2, others=0.5)])
    assert every.figures == {"rate": 2}
    assert every.is_disturbed


def test_one_failure_makes_the_row_fail() -> None:
    failed = summarize([sample(1), sample(0, failed="lost one"), sample(3)])
    assert failed.failed == "lost one"
    assert not failed.figures


def test_a_run_without_measurements_has_no_figures() -> None:
    assert summarize([]).figures == {}


def test_ratios_need_both_sides() -> None:
    assert ratio({"rate": 8.0}, {"rate": 10.0}, "rate") == pytest.approx(0.8)
    assert ratio({}, {"rate": 10.0}, "rate") is None
    assert ratio({"rate": 8.0}, {}, "rate") is None
    assert ratio({"rate": 8.0}, {"rate": 0.0}, "rate") is None
