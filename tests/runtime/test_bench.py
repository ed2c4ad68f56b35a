"""`ringcast bench` with real processes: that it works and what it says, never how fast it is."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import ringcast
from ringcast import presets
from ringcast.control.slow_members import SlowMembers
from ringcast_bench.job import BenchFailure, Job
from ringcast_bench.namespace import Namespace
from ringcast_bench.run import jobs_of, run_jobs
from ringcast_bench.scenarios import SCENARIOS, Scenario
from ringcast_bench.views.form import form
from tests.runtime.support import SOON

ROOT = Path(__file__).parents[2]
PEERS = ("pyzmq", "zenoh", "nats", "redis")


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringcast.cli.main", "bench", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def scenario(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def test_a_scenario_has_rows_medians_ratios_and_goals() -> None:
    done = bench("--quick", "--repeats", "2", "--only", "1-3-1k", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(done.stdout)
    assert printed["quick"]
    assert printed["machine"]["packages"]["ringcast"]
    rows = printed["scenarios"]["1-3-1k"]["rows"]
    for who in ("raw", "ringcast"):
        row = rows[who]
        assert not row["failed"]
        assert len(row["runs"]) == 2
        assert row["median"]["rate"] > 0
        assert row["median"]["sender_cpu_us"] > 0
        assert row["median"]["receiver_cpu_us"] > 0
        assert row["median"]["receiver_rss"] > 1e6
        assert isinstance(row["disturbed"], bool)
    for who in PEERS:  # One that is not installed is named, with the reason.
        assert rows[who].get("missing") or rows[who]["median"]["rate"] > 0
    first = printed["scenarios"]["1-3-1k"]["goals"][0]
    assert first["against"] == "raw"
    ratio = rows["ringcast"]["median"]["rate"] / rows["raw"]["median"]["rate"]
    assert first["value"] == pytest.approx(ratio)
    assert first["reached"] is (ratio >= first["least"])


def test_two_trees_by_turns() -> None:
    words = ("beside", str(ROOT), "--only", "1-1-1k,round-trip", "--quick", "--repeats", "2")
    done = bench(*words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {(row["scenario"], row["who"]): row for row in json.loads(done.stdout)}
    assert len(rows) == 3
    for row in rows.values():
        assert not row["has_failed"], row
        assert row["theirs"] > 0
        assert row["ours"] > 0
        assert row["speed"] > 0
    assert bench(*words, "--least", "1000").returncode == 1


def test_scenarios_in_words() -> None:
    done = bench("--quick", "--repeats", "1", "--only", "4-4-1k,round-trip,idle")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("4-4-1k: ", "messages/s", "p99 µs", "member MB", "aimed at", "reached"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "name", ["1-3-1k-each", "1-3-1k-tcp", "1-3-10m", "loss", "join", "watched"]
)
def test_bare_sockets_and_members_lose_nothing(name: str) -> None:
    chosen = scenario(name)
    with Namespace() as network:
        for row in chosen.rows:
            if row.kind != "peer" and not row.firewall:
                figures = run_jobs(jobs_of(chosen, row, quick=True), network.enter)
                assert figures.get("rate", figures.get("join", 0)) > 0, row.who


def test_nobody_waits_for_the_one_that_is_slow() -> None:
    chosen = scenario("slow")
    patient = next(row for row in chosen.rows if row.pause)
    # The policy is not to be applied here, to whom it may concern on a slow machine.
    row = replace(patient, spec=presets.loopback().insert(SlowMembers(bound=60.0)))
    jobs = [replace(job, count=2_000) for job in jobs_of(chosen, row, quick=True)]
    with Namespace() as network:
        assert run_jobs(jobs, network.enter)["rate"] > 0


def test_a_receiver_that_gets_something_else_makes_the_run_fail() -> None:
    chosen = scenario("1-3-1k")
    jobs = jobs_of(chosen, chosen.rows[0], quick=True)
    jobs[-1] = replace(jobs[-1], size=999)
    with Namespace() as network, pytest.raises(BenchFailure, match="not the one that was sent"):
        run_jobs(jobs, network.enter)


def test_a_process_that_cannot_begin_makes_the_run_fail() -> None:
    with pytest.raises(BenchFailure, match="ringcast receiver 0"):
        run_jobs([Job(contestant="ringcast", spec="[Nonsense]")], ())


def test_a_process_ends_with_the_one_that_started_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ringcast_bench.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(Job(contestant="raw-multicast").to_json().encode() + b"\n{}\n")
        process.stdin.flush()
        assert b"opened" in process.stdout.readline()
        process.stdin.close()
        assert process.wait(SOON) == 1


def test_bench_form_measures_groups() -> None:
    with Namespace() as network:
        assert [group.members for group in form([2, 3], network)] == [2, 3]


def test_the_trace_and_what_it_costs() -> None:
    done = bench("trace", "--quick", "--repeats", "1", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["scenarios"]["trace"]["rows"]
    assert rows["with"]["median"]["sender_cpu_us"] > 0
    assert rows["without"]["median"]["sender_cpu_us"] > 0


def test_the_list_names_every_scenario() -> None:
    assert list(json.loads(bench("--list", "--json").stdout)) == [s.name for s in SCENARIOS]
    assert "1-3-100m" in bench("--list").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "nope"], "there is no scenario 'nope'"),
        (["--repeats", "0", "--only", "idle"], "--repeats is 0"),
        (["beside", "/nowhere"], "'/nowhere' is neither a folder nor a revision"),
        (["form", "--members", "two"], "--members is 'two'"),
        (["form", "--only", "nope"], "--only: there is no 'nope': choose from kill,"),
        (["form", "--stacks", "lam"], "--stacks: there is no 'lam': choose from loopback, tcp"),
        (["micro", "--baseline", "/nowhere"], "no results of micro-benchmarks"),
    ],
)
def test_wrong_arguments_get_a_sentence(words: list[str], sentence: str) -> None:
    done = bench(*words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not done.stdout


def test_a_sentence_says_what_to_install_where_the_benchmarks_are_missing() -> None:
    source = str(Path(ringcast.__file__).parents[1])
    script = (
        "import sys; sys.path = [p for p in sys.path if not p.endswith('/bench')];"
        "from ringcast.cli.main import main; sys.exit(main(['bench', '--list']))"
    )
    # -S: without the installed packages, among which are the benchmarks.
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {script}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert "pip install -e bench" in done.stderr


def test_rows_from_workers_with_and_without_a_gateway() -> None:
    script = (
        "from ringcast_bench.sink import writers as sink; sink.ROWS = 1_000; sink.WORKERS = (1,);"
        "print(*sink.table(), sep='\\n')"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == ["workers", "gateway"]


@pytest.mark.spark
@pytest.mark.slow
def test_rows_from_spark_to_two_receivers_beside_parquet() -> None:
    script = (
        "from ringcast_bench.sink import by_spark; by_spark.ROWS = 1_000; by_spark.ROUNDS = 1;"
        "print(*by_spark.table(), sep='\\n')"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=True)
    assert [line[:7] for line in done.stdout.splitlines()[1:]] == ["a group", "Parquet"]
