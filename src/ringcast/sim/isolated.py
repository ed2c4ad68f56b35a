"""A simulation in a process of its own, so that whatever becomes of it harms no other one.

A sweep runs thousands of them. One may break a guarantee, raise, use up the memory, or never come
to an end: each time that is said in its result, and the next one is not affected. A child of `fork`
costs a few milliseconds; what it found comes back through a pipe, as JSON. The kernel ends a child
that has used up its CPU time, so it need not be watched.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ringcast.errors import RingcastError, Timeout
from ringcast.sim.trial import Trial, TrialOutcome, run

DONE, INCOMPLETE, BROKEN, FAILED = "done", "incomplete", "broken", "failed"
"""How a simulation ends: as it should; with messages that were not delivered; with a guarantee that
did not hold; not at all."""

CPU_SECONDS_MAX = 600.0
PROBLEM_MAX = 1_000
"""Characters of a problem that are kept."""
LINES_MAX = 20
"""Violations, and things outstanding, that are kept of one simulation."""


@dataclass(frozen=True, kw_only=True)
class IsolatedResult:
    """What became of one simulation."""

    status: str
    problem: str
    """What went wrong, as a sentence; empty when nothing did."""
    outcome: TrialOutcome | None
    """None when the simulation failed. Of violations, and of what is outstanding, the first."""
    violations: int
    """How many guarantees did not hold."""
    cpu_seconds: float
    began_at: float
    """Seconds since 1970."""
    real_seconds: float
    worker: str
    """The host and the process that it ran on."""


Work = Callable[[Trial], TrialOutcome]


def run_watched(trial: Trial) -> TrialOutcome:
    """Run a trial, and end the process when no process is left to tell the outcome to."""
    parent = os.getppid()

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    return run(trial, progress=look)


def run_isolated(
    trial: Trial, cpu_seconds_max: float = CPU_SECONDS_MAX, work: Work = run_watched
) -> IsolatedResult:
    """Run a trial in a child of this process. Raises nothing that the trial does."""
    began_at, began = time.time(), time.perf_counter()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        _run_child(trial, work, cpu_seconds_max, writable)
    os.close(writable)
    with open(readable, "rb") as pipe:
        data = pipe.read()
    _, state, usage = os.wait4(child, 0)
    told = _told(data, state, cpu_seconds_max)
    outcome = told.pop("outcome", None)
    return IsolatedResult(
        **told,
        outcome=None if outcome is None else TrialOutcome(**outcome),
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        began_at=began_at,
        real_seconds=time.perf_counter() - began,
        worker=f"{socket.gethostname()}:{os.getpid()}",
    )


def _run_child(trial: Trial, work: Work, cpu_seconds_max: float, writable: int) -> None:
    """Run, write, and end; nothing of the parent's is cleaned up on the way out."""
    try:
        # This signal has no handler: the kernel ends the process when it has used up its time.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds_max)
        with open(writable, "wb") as pipe:
            pipe.write(json.dumps(_run(trial, work)).encode())
    finally:
        os._exit(0)


def _run(trial: Trial, work: Work) -> dict[str, Any]:
    """What is to be told of a trial, as plain data."""
    try:
        return _judged(work(trial))
    except Timeout as error:
        return _problem(INCOMPLETE, str(error))
    except RingcastError as error:
        return _problem(FAILED, str(error))
    except MemoryError:
        return _problem(FAILED, "the memory did not suffice")
    except Exception as error:  # A stack that raises is a result like any other.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        return _problem(FAILED, f"{type(error).__name__} at {where}: {error}")


def _judged(outcome: TrialOutcome) -> dict[str, Any]:
    """How an outcome is, and as much of it as is kept."""
    broken, left = outcome.violations, outcome.outstanding
    missing = outcome.expected - outcome.delivered
    told = _problem(DONE, "")
    if broken:
        told = _problem(BROKEN, _first(broken, "violations")) | {"violations": len(broken)}
    elif left:
        told = _problem(INCOMPLETE, _first(left, "things"))
    elif missing > 0:
        what = f"{missing:,} of {outcome.expected:,} deliveries were given up"
        told = _problem(INCOMPLETE, what)
    cut = {"violations": broken[:LINES_MAX], "outstanding": left[:LINES_MAX]}
    return told | {"outcome": asdict(outcome) | cut}


def _problem(status: str, problem: str) -> dict[str, Any]:
    return {"status": status, "problem": problem[:PROBLEM_MAX], "violations": 0}


def _first(lines: list[str], what: str) -> str:
    more = len(lines) - 1
    return lines[0] + (f", and {more:,} {what} more" if more else "")


def _told(data: bytes, state: int, cpu_seconds_max: float) -> dict[str, Any]:
    """What a child wrote, or else how it ended."""
    if os.WIFSIGNALED(state) or not data:
        return _problem(FAILED, _death(state, cpu_seconds_max))
    told: dict[str, Any] = json.loads(data)
    return told


def _death(state: int, cpu_seconds_max: float) -> str:
    number = os.WTERMSIG(state) if os.WIFSIGNALED(state) else 0
    if number == signal.SIGPROF:
        return f"it took more than {cpu_seconds_max:g} seconds of CPU time"
    if number == signal.SIGKILL:
        return "its process was killed, for want of memory most likely"
    name = signal.Signals(number).name if number else f"status {os.WEXITSTATUS(state)}"
    return f"its process ended with {name}"
