"""Runs mutants inside one session of pytest: collected once, then one fork per mutant.

A first fork runs every test and notes the lines that it reaches and the time that it takes. A
mutant is then met by the tests that reach its line only, until one fails. The mutated function
replaces the loaded one (`__code__`), so nothing is imported or collected again.
"""

import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import FrameType, FunctionType

import coverage
import pytest

from tools.mutants.operators import Mutant, code_of

MEMORY_MAX = 4 << 30
"""Bytes of address space of one fork: a mutant that allocates without end gets a MemoryError."""
SLOWER_MAX, SECONDS_MIN = 10, 5.0
"""A test counts as hung after ten times its time, and five seconds of CPU more."""

GROUPS = "tests/sim/"
"""Tests of whole groups: they reach nearly every line, and few of them say what is wrong."""


class Verdict(IntEnum):
    """What came of a mutant. The numbers are the exit statuses of the forks."""

    SURVIVED = 0
    KILLED = 1
    HUNG = 2
    UNREACHED = 3
    REFUSED = 4


@dataclass
class Reach:
    """What the tests do without any change: (path, line) → tests, test → seconds of CPU."""

    tests: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


class Runner:
    """A plugin of pytest that runs mutants where pytest would run its tests."""

    def __init__(
        self, root: Path, mutants: list[Mutant], budget: float, tell: Callable[[str], None]
    ) -> None:
        self._root, self._mutants, self._budget, self._tell = root, mutants, budget, tell
        self._texts = {m.path: (root / m.path).read_text() for m in mutants}
        self._items: dict[str, pytest.Item] = {}
        self._failing = False
        self.verdicts: list[tuple[Mutant, Verdict]] = []
        self.reach = Reach()

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # noqa: PLC0415 (pytest must import it first)

        # A failing example is enough: none is made smaller.
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile(
            "mutants", derandomize=True, deadline=None, database=None, phases=phases
        )

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._read_reach()
        functions = self._functions()
        gc.freeze()  # Pages that no fork need copy.
        for number, mutant in enumerate(self._mutants, 1):
            verdict = self._try(mutant, functions[mutant.path])
            self.verdicts.append((mutant, verdict))
            self._tell(f"{number}/{len(self._mutants)} {verdict.name.lower()} {mutant}")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failing |= report.failed

    def _functions(self) -> dict[str, list[FunctionType]]:
        """The loaded functions of each module that has mutants, closures among them."""
        found: dict[str, list[FunctionType]] = {path: [] for path in self._texts}
        paths = {str(self._root / path): path for path in self._texts}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in paths:
                found[paths[thing.__code__.co_filename]].append(thing)
        return found

    # --- without a mutant -------------------------------------------------------------------------

    def _read_reach(self) -> None:
        read, write = os.pipe()
        if not (child := os.fork()):
            os.close(read)
            _be_silent()
            with os.fdopen(write, "w") as out:
                json.dump(self._measure(), out)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            found = json.load(pipe)
        os.waitpid(child, 0)
        self.reach = Reach(
            {(path, line): tests for path, line, tests in found["reached"]},
            found["seconds"],
            found["failed"],
        )

    def _measure(self) -> dict[str, object]:
        files = {str(self._root / path): path for path in self._texts}
        measured = coverage.Coverage(data_file=None, include=list(files), config_file=False)
        seconds: dict[str, float] = {}
        failed: list[str] = []
        measured.start()
        for name, item in self._items.items():
            measured.switch_context(name)
            begun, self._failing = time.process_time(), False
            self._run(item)
            seconds[name] = time.process_time() - begun
            failed += [name] if self._failing else []
        measured.stop()
        data = measured.get_data()
        reached = [
            (path, line, [t for t in tests if t and t not in failed])
            for file, path in files.items()
            for line, tests in data.contexts_by_lineno(file).items()
        ]
        return {"reached": reached, "seconds": seconds, "failed": failed}

    # --- with one ---------------------------------------------------------------------------------

    def _try(self, mutant: Mutant, functions: list[FunctionType]) -> Verdict:
        tests = list(self._tests_of(mutant))
        if not tests:
            return Verdict.UNREACHED
        if not (child := os.fork()):
            os._exit(self._meet(mutant, functions, tests))
        _, status = os.waitpid(child, 0)
        return Verdict(os.WEXITSTATUS(status)) if os.WIFEXITED(status) else Verdict.HUNG

    def _tests_of(self, mutant: Mutant) -> Iterator[str]:
        """The tests that reach the line while the budget lasts: those of parts before those of
        whole groups, the quickest first."""
        spent, seconds = 0.0, self.reach.seconds
        lines = range(mutant.statement, mutant.line + 1)
        reaching = {t for line in lines for t in self.reach.tests.get((mutant.path, line), [])}
        for name in sorted(reaching, key=lambda t: (t.startswith(GROUPS), seconds[t], t)):
            spent += seconds[name]
            if spent > self._budget and spent > seconds[name]:
                return
            yield name

    def _meet(self, mutant: Mutant, functions: list[FunctionType], tests: list[str]) -> Verdict:
        """In the fork: change the function, then run tests until one fails."""
        _be_silent()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        signal.signal(signal.SIGVTALRM, _hang)
        try:
            self._replace(mutant, functions)
        except ValueError:
            return Verdict.REFUSED  # It has other closure variables: Python cannot swap it.
        for name in tests:
            limit = SECONDS_MIN + SLOWER_MAX * self.reach.seconds[name]
            signal.setitimer(signal.ITIMER_VIRTUAL, limit)
            self._run(self._items[name])
            if self._failing:
                return Verdict.KILLED
        return Verdict.SURVIVED

    def _replace(self, mutant: Mutant, functions: list[FunctionType]) -> None:
        changed = code_of(mutant, self._texts[mutant.path], str(self._root / mutant.path))
        for function in functions:
            code = function.__code__
            new = changed.get((code.co_qualname, code.co_firstlineno), code)
            if new != code:
                function.__code__ = new

    def _run(self, item: pytest.Item) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def run(
    root: Path, tests: list[str], mutants: list[Mutant], budget: float, tell: Callable[[str], None]
) -> Runner:
    """Collect the tests and try every mutant; the runner returned has the verdicts."""
    runner = Runner(root, mutants, budget, tell)
    options = ["-q", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider"]
    options += ["-m", "not slow", "--hypothesis-profile=mutants", f"--rootdir={root}"]
    pytest.main([*options, *tests], plugins=[runner])
    return runner


def _be_silent() -> None:
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _hang(number: int, frame: FrameType | None) -> None:
    os._exit(Verdict.HUNG)
