"""The demo end to end, small: real processes, one killed, one joining, audited on Spark."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringcast.demo.play import MARKER
from ringcast.trace.writer import TraceWriter

# A busy machine may need minutes for what takes seconds; only a demo that hangs should fail.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--members", "3", "--messages", "600", "--seconds", "3")


def ringcast(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "ringcast.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A demo that was run: where, and what it said."""
    out = tmp_path_factory.mktemp("demo") / "out"
    done = ringcast("demo", *SMALL, "--out", str(out), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    assert "Killed" in done.stderr
    return out, told


def test_every_guarantee_held_under_faults(played: tuple[Path, dict[str, object]]) -> None:
    _, told = played
    assert told["verdict"] == "clean"
    assert told["is_clean"] is True
    assert told["violations"] == []
    assert told["killed"]
    assert told["joined"]


def test_the_figures_are_those_of_the_run(played: tuple[Path, dict[str, object]]) -> None:
    _, told = played
    figures, lost = told["figures"], told["lost_on_purpose"]
    assert isinstance(figures, dict)
    assert isinstance(lost, dict)
    # Two that stayed, the newcomer with half as many, a last message of each; the victim's as far
    # as its trace was written.
    assert 2 * 601 + 301 <= figures["sent_messages"] <= 2 * 601 + 301 + 600
    assert figures["resent_messages"] > 0
    assert figures["members"] >= 4
    assert figures["views"] >= 3
    assert sum(lost.values()) > 0


def test_the_journal_has_what_its_recorder_was_given(
    played: tuple[Path, dict[str, object]],
) -> None:
    out, told = played
    journal = told["journal"]
    assert isinstance(journal, dict)
    rows = sum(pq.read_metadata(file).num_rows for file in (out / "journal").glob("*.parquet"))
    assert rows == journal["rows"] == journal["recorded"] >= 2 * 601 + 301
    assert journal["holes"] == 0


def test_the_report_is_one_page(played: tuple[Path, dict[str, object]]) -> None:
    out, _ = played
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert 'src="http' not in page


def test_the_audit_of_the_same_traces_agrees_and_finds_a_lost_file(
    played: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    out, told = played
    spoilt = tmp_path / "spoilt"
    shutil.copytree(out / "trace", spoilt)
    clean = ringcast("audit", str(spoilt), "--json")
    assert clean.returncode == 0, clean.stderr
    assert json.loads(clean.stdout)["figures"] == told["figures"]
    # The second file of a member with several: rows from the middle of its trace.
    next(f for f in sorted(spoilt.glob("*-000001-*.parquet")) if _is_middle(f)).unlink()
    page = tmp_path / "r.html"
    broken = ringcast("audit", str(spoilt), "--report", str(page))
    assert broken.returncode == 1
    # Which violation it is depends on the rows of that file; each names a member.
    assert "member" in broken.stdout.partition("BROKEN")[2]
    assert page.exists()


def _is_middle(file: Path) -> bool:
    """Whether messages were delivered in this file, and in a later one of the same member."""
    member, number, _ = file.stem.split("-")
    later = [f for f in file.parent.glob(f"{member}-*.parquet") if f.stem.split("-")[1] > number]
    return _delivers(file) and any(map(_delivers, later))


def _delivers(file: Path) -> bool:
    return "delivered" in pq.read_table(file, columns=["kind"])["kind"].to_pylist()


def test_what_cannot_be_audited_is_said_in_a_sentence(tmp_path: Path) -> None:
    empty, foreign = tmp_path / "empty", tmp_path / "foreign"
    empty.mkdir()
    foreign.mkdir()
    pq.write_table(pa.table({"x": [1]}), foreign / "a.parquet")
    with TraceWriter(tmp_path / "damaged", 7) as writer:
        writer.append_view(1, 7, [7], ["ann"], 100)
    (damaged,) = (tmp_path / "damaged").glob("*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    wrong = {
        ("There is no directory", str(tmp_path / "none")),
        ("There is no trace in", str(empty)),
        ("is not a trace of Ringcast", str(foreign)),
        (f"{damaged} is damaged", str(tmp_path / "damaged")),
        ("No Spark master answers", str(foreign), "--master", "spark://127.0.0.1:1"),
    }
    for sentence, *words in wrong:
        done = ringcast("audit", *words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        last = done.stderr.strip().splitlines()[-1]
        assert sentence in last
        assert "Traceback" not in done.stderr


def test_a_directory_of_another_program_is_not_cleared(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.touch()
    done = ringcast("demo", *SMALL, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "name another with --out" in done.stderr
    assert precious.exists()
    assert not (tmp_path / MARKER).exists()


@pytest.mark.parametrize("words", [("--members", "2"), ("--loss", "0.9"), ("--messages", "0")])
def test_a_demo_that_cannot_be_is_refused(words: tuple[str, str], tmp_path: Path) -> None:
    done = ringcast("demo", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
