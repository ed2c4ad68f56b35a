"""Sweeps on Spark: the same answers as one run at a time, whatever becomes of single runs."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast.cli.main import main
from ringcast.errors import ConfigError
from ringcast.sim.isolated import DONE, FAILED, INCOMPLETE
from ringcast.sim.trial import run as run_trial
from ringcast.spark.sweep import Grid, Sweep, run_grid, text, write
from ringcast.spec import StackSpec
from tests.spark.conftest import SOURCE
from tests.spark.test_report import Page

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

GRID = """
members = 3
messages = 200
size = [20, 5000]
seeds = 2
timeout = 5
best = "p99"

[network]
loss = [0.0, 0.05, 1.0]
delay = 0.001

[settings]
NakAck4.capacity = [4, 64]
NakAck4.xmit_interval = 0.02
Fragment.max_message = [1000, 1000000]

[bounds]
p99 = 0.1
where = { loss = 0.05 }
"""
"""A third of the runs never joins, and half of the rest cannot send large messages."""

GOOD = GRID.replace(", 1.0]", "]").replace("[1000, 1000000]", "1000000")


@pytest.fixture(scope="module")
def spoilt(spark: SparkSession) -> Sweep:
    return run_grid(spark, Grid.parse(tomllib.loads(GRID)))


@pytest.fixture(scope="module")
def good(spark: SparkSession) -> Sweep:
    return run_grid(spark, Grid.parse(tomllib.loads(GOOD)))


def test_every_run_has_a_row_in_the_order_of_the_grid(spoilt: Sweep) -> None:
    assert [one.run for one in spoilt.finished] == list(spoilt.grid.runs())
    assert spoilt.frame.count() == spoilt.grid.count == 48


def test_wrong_runs_say_so_and_lose_no_others(spoilt: Sweep) -> None:
    for one in spoilt.finished:
        size, loss = one.run.scene["size"], one.run.scene["loss"]
        limit = dict(one.run.candidate.settings)["Fragment.max_message"]
        if loss == 1.0:
            expected = INCOMPLETE, "in vain for all members to be in one view"
        elif (size, limit) == (5000, 1000):
            expected = FAILED, "5,000 bytes"
        else:
            expected = DONE, ""
        assert one.result.status == expected[0], one
        assert expected[1] in one.result.problem


def test_runs_are_those_of_the_simulator(good: Sweep) -> None:
    for one in good.finished[::5]:
        outcome = run_trial(good.grid.trial(one.run))
        assert one.result.outcome is not None
        assert one.result.outcome.trace_hash == outcome.trace_hash
        assert one.result.outcome.latency_p99 == outcome.latency_p99


def test_one_command_repeats_a_run(good: Sweep, capsys: pytest.CaptureFixture[str]) -> None:
    row = good.frame.where("loss > 0").tail(1)[0]
    words = row["command"].split()
    assert words[:2] == ["ringcast", "sim"]
    assert main([*words[1:], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["trace_hash"] == row["trace_hash"]
    assert printed["latency_p99"] == row["p99"]
    assert printed["retransmitted"] == row["retransmitted"]
    assert printed["window_bytes_max"] == row["window_bytes"]


def test_a_row_has_settings_scene_and_figures(good: Sweep) -> None:
    rows = good.frame.where("loss > 0 and size = 5000").collect()
    assert len(rows) == 4
    for row in rows:
        assert row["NakAck4_capacity"] in (4, 64)
        assert (row["members"], row["delay_low"], row["delay_high"]) == (3, 0.001, 0.001)
        assert (row["status"], row["violations"]) == (DONE, 0)
        assert 0.001 <= row["p50"] <= row["p99"] <= row["max"]
        assert row["delivered"] == row["expected"] == 600
        assert row["throughput"] > 0
        assert row["cpu_seconds"] > 0


def test_the_worst_seed_counts(good: Sweep) -> None:
    for line in good.judgement.lines:
        seeds = [
            one.result.outcome.latency_p99
            for one in good.finished
            if (one.run.scene_number, one.run.candidate) == (line.scene_number, line.candidate)
            and one.result.outcome is not None
        ]
        assert len(seeds) == 2
        assert line.figures["p99"] == max(value for value in seeds if value is not None)


def test_the_best_is_within_the_bounds(good: Sweep) -> None:
    best = good.judgement.best
    assert best is not None
    assert all(line.is_good for line in good.judgement.of(best))
    assert good.judgement.scores[best.number] == min(
        good.judgement.scores[candidate.number] for candidate in good.judgement.within
    )
    assert text.is_success(good)
    assert "BEST by p99" in list(text.report(good))[-1]


def test_who_has_wrong_runs_is_not_within_the_bounds(spoilt: Sweep) -> None:
    assert spoilt.judgement.best is None
    assert not text.is_success(spoilt)
    report = "\n".join(text.report(spoilt))
    assert "24 of 48 simulations did not end as they should" in report
    assert "ringcast sim --preset lan --set NakAck4.capacity=4" in report
    assert "NOTHING is within the bounds" in report


def test_nothing_within_the_bounds_names_the_nearest(good: Sweep, tmp_path: Path) -> None:
    (tmp_path / write.BEST).write_text("of an earlier sweep")
    narrow = Grid.parse(tomllib.loads(GOOD.replace("p99 = 0.1", "p99 = 0.0001")))
    finished = good.finished
    strict = Sweep(narrow, finished, good.cores, good.real_seconds, good.spark)
    assert "the nearest is NakAck4.capacity" in text.verdict(strict)
    assert not text.is_success(strict)
    assert [file.name for file in write.write(strict, tmp_path)] == [write.RUNS, write.PAGE]
    assert not (tmp_path / write.BEST).exists()


def test_a_sweep_writes_its_files(good: Sweep, tmp_path: Path) -> None:
    place = write.prepare(tmp_path / "a" / "b")
    assert [file.name for file in write.write(good, place)] == [write.RUNS, write.PAGE, write.BEST]
    assert pq.read_table(place / write.RUNS).num_rows == 16
    assert good.judgement.best is not None
    assert StackSpec.load(place / write.BEST) == good.judgement.best.spec
    assert (
        main(["sim", "--spec", str(place / write.BEST), "--messages", "10", "--members", "2"]) == 0
    )


@pytest.mark.parametrize("name", ["good", "spoilt"])
def test_the_page_is_whole_and_fetches_nothing(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    sweep: Sweep = request.getfixturevalue(name)
    write.write(sweep, tmp_path)
    page = Page((tmp_path / write.PAGE).read_text())
    assert page.tags.count("svg") >= 5
    words = " ".join(page.words)
    assert "How NakAck4.capacity acts" in words
    assert ("The best settings" in words) == (name == "good")
    assert ("did not end as it should" in words) == (name == "spoilt")


def test_a_sweep_from_python(spark: SparkSession) -> None:
    frame = rs.sweep(spark, {"members": [2, 3], "messages": 10, "seeds": [4]})
    assert [row["members"] for row in frame.collect()] == [2, 3]
    with pytest.raises(ConfigError, match="members is 0"):
        rs.sweep(spark, {"members": 0})


def test_progress_reaches_the_end(spark: SparkSession) -> None:
    told: list[tuple[int, int, int]] = []
    grid = Grid.parse({"members": 2, "messages": 10, "seeds": 20, "timeout": 5})
    run_grid(spark, grid, lambda *how_far: told.append(how_far))
    assert told[-1] == (20, 0, 20)
    assert told == sorted(told)


def test_a_run_that_takes_too_long_is_ended(spark: SparkSession) -> None:
    tables: dict[str, Any] = {"members": [2, 40], "messages": 2000, "batch": 1}
    done = run_grid(spark, Grid.parse(tables | {"cpu_seconds_max": 0.5}))
    assert [one.result.status for one in done.finished] == [DONE, FAILED]
    assert "more than 0.5 seconds of CPU time" in done.finished[1].result.problem


# --- the command ---------------------------------------------------------------------------------


def sweep_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ringcast.cli.main", "sweep", *words],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


@pytest.mark.slow
def test_a_cluster_gives_the_same_answers(cluster: str, good: Sweep, tmp_path: Path) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(GOOD)
    done = sweep_command(str(path), "--master", cluster, "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["lines"] == json.loads(json.dumps(text.plain(good)["lines"]))
    assert told["best"] == json.loads(json.dumps(text.plain(good)["best"]))
    assert 0 < told["ratio_to_ideal"] <= 1
    assert "16 of 16 simulations" in done.stderr
    hashes = pq.read_table(out / write.RUNS)["trace_hash"].to_pylist()
    assert hashes == [row["trace_hash"] for row in good.frame.collect()]
    workers = set(pq.read_table(out / write.RUNS)["worker"].to_pylist())
    assert len(workers) >= 2, "both workers had something to do"


def test_what_cannot_be_swept_is_said_in_a_sentence(tmp_path: Path) -> None:
    wrong, right, file = tmp_path / "wrong.toml", tmp_path / "right.toml", tmp_path / "file"
    wrong.write_text("[network]\nlose = 0.1")
    right.write_text("members = 2")
    file.touch()
    sentences = {
        "cannot read the grid": [str(tmp_path / "none.toml")],
        "network.lose is not a key": [str(wrong)],
        "is a file: name a directory": [str(right), "--out", str(file)],
        "No Spark master answers": [str(right), "--master", "spark://127.0.0.1:1"],
    }
    for sentence, words in sentences.items():
        done = sweep_command(*words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert sentence in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
