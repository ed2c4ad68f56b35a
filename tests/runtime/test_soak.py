"""`ringcast soak`: a short one is clean, and what is broken is said, with an exit status."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from ringcast.demo.process import MemberProcess
from ringcast.soak.cast import Cast
from ringcast.soak.inspector import Inspector
from ringcast.soak.plan import SoakPlan
from ringcast.soak.run import soak
from tests.runtime.command import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_short_soak_is_clean(transport: str, home: Path, tmp_path: Path) -> None:
    words = ("--minutes", "0.2", "--seed", "3", "--out", str(tmp_path / "soak"), "--json")
    status, out, err = run(home, "soak", *words, "--transport", transport, "--rate", "200")
    assert status == 0, err
    told = json.loads(out)
    assert told["is_clean"]
    assert told["problems"] == []
    assert sum(told["actions"].values()) >= 2
    assert told["views"] > 3
    assert told["deliveries"] > 1_000
    assert [row["at"] for row in told["vitals"]] == ["start", "end"]
    assert "one view of" in err
    assert list((tmp_path / "soak" / "trace").glob("*.parquet")) == []


def test_a_member_that_dies_on_its_own_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A steady member that is gone cannot come to the view of all."""
    join = Cast.join

    def join_and_kill(cast: Cast) -> str:
        victim: MemberProcess = cast.steady[0]
        victim.signal(signal.SIGKILL)
        return join(cast)

    monkeypatch.setattr(Cast, "join", join_and_kill)
    for name, value in (("ACTIONS", {"join": 1}), ("OUTSIDE", {}), ("HASTY_CHANCE", 0.0)):
        monkeypatch.setattr(f"ringcast.soak.run.{name}", value)
    outcome = soak(SoakPlan(out=tmp_path / "soak", minutes=1.0, steady=2), lambda line: None)
    assert not outcome.is_clean
    assert "steady-1 ended before it reached the view of all" in outcome.stuck
    assert outcome.verdict().startswith("BROKEN: 1 problem")


def test_memory_that_grows_is_a_problem(tmp_path: Path) -> None:
    plan = SoakPlan(out=tmp_path / "soak", minutes=0.05, steady=2, file_growth=-1)
    outcome = soak(plan, lambda line: None)
    assert outcome.violations == []
    assert [line for line in outcome.growth if "descriptors more" in line]
    assert not outcome.is_clean


def test_nothing_outlives_the_cast(tmp_path: Path) -> None:
    from ringcast.soak.plan import prepare
    from ringcast.trace.rules import rules_of

    plan = SoakPlan(out=tmp_path / "soak", steady=2)
    prepare(plan)
    with ExitStack() as stack:
        cast = Cast(plan, stack, Inspector(plan.trace, rules_of(plan.stack())))
        cast.settle_in()
        cast.pause(cast.steady[1])
        pids = list(cast.pids.values())
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_members_without_a_protection_are_found_out(home: Path, tmp_path: Path) -> None:
    """What members deliver twice is in their traces, and ends the soak."""
    script = Path(__file__).parents[1] / "broken_soak.py"
    words = ["--minutes", "1", "--rate", "200", "--loss", "0.1", "--out", str(tmp_path / "soak")]
    command = [sys.executable, str(script), "duplicates_are_handed_up", *words]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(home)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=280, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "delivered twice" in done.stdout
