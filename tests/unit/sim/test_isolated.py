"""A simulation in a process of its own: what becomes of it is told, and harms nobody."""

import os
import signal
from typing import NoReturn

import pytest

from ringcast import presets
from ringcast.errors import Timeout
from ringcast.sim.isolated import BROKEN, DONE, FAILED, INCOMPLETE, Work, run_isolated
from ringcast.sim.trial import Trial, TrialOutcome, run

TRIAL = Trial(spec=presets.lan(), members=2, messages=10)


def test_the_outcome_is_that_of_the_same_run_in_this_process() -> None:
    result = run_isolated(TRIAL)
    assert (result.status, result.problem) == (DONE, "")
    assert result.outcome is not None
    expected = run(TRIAL)
    assert result.outcome.trace_hash == expected.trace_hash
    assert result.outcome.frames == expected.frames
    assert result.cpu_seconds > 0
    assert result.worker.endswith(f":{os.getpid()}")


def test_a_run_that_is_not_done_in_time_says_what_is_outstanding() -> None:
    result = run_isolated(Trial(spec=presets.lan(), members=2, messages=10, loss=1.0, timeout=1.0))
    assert result.status == INCOMPLETE
    assert "all members to be in one view" in result.problem


def raise_it(trial: Trial) -> NoReturn:
    raise ValueError("the stack is upset")


def be_killed(trial: Trial) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def never_end(trial: Trial) -> NoReturn:
    while True:
        pass


def vanish(trial: Trial) -> NoReturn:
    os._exit(3)


def be_late(trial: Trial) -> NoReturn:
    raise Timeout("there is no rest")


@pytest.mark.parametrize(
    ("work", "status", "problem"),
    [
        (raise_it, FAILED, "ValueError at test_isolated.py"),
        (be_killed, FAILED, "killed"),
        (never_end, FAILED, "more than 0.2 seconds of CPU time"),
        (vanish, FAILED, "status 3"),
        (be_late, INCOMPLETE, "there is no rest"),
    ],
)
def test_whatever_happens_is_told(work: Work, status: str, problem: str) -> None:
    result = run_isolated(TRIAL, cpu_seconds_max=0.2, work=work)
    assert result.status == status
    assert problem in result.problem
    assert result.outcome is None


def spoilt(**changes: object) -> Work:
    def work(trial: Trial) -> TrialOutcome:
        outcome = run(trial)
        return TrialOutcome(**(vars(outcome) | changes))

    return work


@pytest.mark.parametrize(
    ("changes", "status", "problem"),
    [
        ({"violations": ["m1: a gap", *"x" * 99]}, BROKEN, "m1: a gap, and 99 violations more"),
        ({"outstanding": ["m1 has 3 of 4"]}, INCOMPLETE, "m1 has 3 of 4"),
        ({"delivered": 15}, INCOMPLETE, "5 of 20 deliveries were given up"),
    ],
)
def test_an_outcome_is_judged(changes: dict[str, object], status: str, problem: str) -> None:
    result = run_isolated(TRIAL, work=spoilt(**changes))
    assert result.status == status
    assert result.problem == problem
    assert result.outcome is not None
    assert len(result.outcome.violations) <= 20
    assert result.violations == (100 if status == BROKEN else 0)
