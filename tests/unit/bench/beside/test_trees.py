"""Another tree: unpacked from a revision, asked for its jobs, given those of this one."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringcast.errors import ConfigError
from ringcast_bench.beside.trees import ROOT, Tree, tree_of
from ringcast_bench.job import Job, Missing
from ringcast_bench.run import jobs_of
from ringcast_bench.scenarios import SCENARIOS

OLD_TREE = {
    "src/ringcast/__init__.py": "",
    "src/ringcast/bench/__init__.py": "",
    "src/ringcast/bench/scenarios.py": """
from types import SimpleNamespace as Some
ROWS = Some(who="ringcast", kind="ringcast"), Some(who="raw", kind="raw")
SCENARIOS = (Some(name="1-1-1k", rows=ROWS),)
""",
    "src/ringcast/bench/run.py": """
import json
from types import SimpleNamespace as Some
def jobs_of(scenario, row, quick):
    job = {"contestant": row.who, "count": 7, "role": "?", "spec": "of the old tree"}
    return [Some(to_json=lambda: json.dumps(job))] * 2
""",
}
"""A tree whose benchmarks are in another place, and know less of a job."""


def jobs(**settings: Any) -> list[Job]:
    pair = [Job(contestant="ringcast", role=role, count=9) for role in ("sender", "receiver")]
    return [replace(job, **settings) for job in pair]


def git(place: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(place), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Has an old tree as its revision `old`, and one without benchmarks as `bare`."""
    place = tmp_path / "repository"
    place.mkdir()
    git(place, "init", "-q")
    (place / "README.md").write_text("nothing to run\n")
    for tag in ("bare", "old"):
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", tag)
        git(place, "tag", tag)
        for name, text in OLD_TREE.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
    return place


def test_a_revision_is_unpacked_and_does_our_jobs_with_its_own_stack(repository: Path) -> None:
    with tree_of("old", repository) as tree:
        assert tree.module == "ringcast.bench.child"
        first, _ = tree.environment["PYTHONPATH"].split(":")
        assert (Path(first) / "ringcast/bench/run.py").exists()
        lines = tree.lines("1-1-1k", "ringcast", jobs(spec="of this tree"))
        assert [json.loads(line) for line in lines] == [
            {"contestant": "ringcast", "count": 9, "role": role, "spec": "of the old tree"}
            for role in ("sender", "receiver")
        ]
    assert not Path(first).exists()


def test_what_the_other_tree_cannot_do_is_missing(repository: Path) -> None:
    with tree_of("old", repository) as tree:
        for scenario, who in (("1-3-1k", "ringcast"), ("1-1-1k", "raw"), ("1-1-1k", "sealed")):
            with pytest.raises(Missing, match="old has no such row"):
                tree.lines(scenario, who, jobs())
        with pytest.raises(Missing, match="old has no jobs with 'closed'"):
            tree.lines("1-1-1k", "ringcast", jobs(closed=True))


def test_what_is_no_tree_is_refused_and_leaves_nothing_behind(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for what, why in (
        ("bare", "bare has no benchmarks"),
        ("nosuch", "'nosuch' is neither a folder nor a revision of "),
        ("--help", "'--help' is neither a folder nor a revision of "),
        (str(tmp_path), "has no benchmarks: give a revision"),
    ):
        with pytest.raises(ConfigError, match=why), tree_of(what, repository):
            pass
    assert not list(temporary.iterdir())


def test_a_tree_that_is_not_the_one_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/ringcast_bench").symlink_to(ROOT / "bench/ringcast_bench")
    (tmp_path / "src").symlink_to(ROOT / "src")
    with pytest.raises(ConfigError, match="is not imported, but "):
        Tree("elsewhere", tmp_path)


def test_this_tree_does_all_of_its_own_jobs() -> None:
    tree = Tree("same", ROOT)
    for scenario in SCENARIOS:
        for row in scenario.rows:
            if row.kind == "ringcast":
                ours = jobs_of(scenario, row, quick=True)
                lines = tree.lines(scenario.name, row.who, ours)
                assert [Job.from_json(line) for line in lines] == ours
