"""A process of a benchmark, for the one that runs it: started, told, heard, ended by its id."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from ringcast_bench.job import BenchFailure, Job, Missing, Report

END_WAIT = 5.0
STDERR_TAIL = 300


def lines_of(jobs: list[Job]) -> list[str]:
    """Each job as a line for the process that does it."""
    return [job.to_json() for job in jobs]


@dataclass(frozen=True)
class Program:
    """What the processes of a run execute, and how they are told their jobs."""

    module: str = "ringcast_bench.child"
    environment: Mapping[str, str] | None = None
    lines: Callable[[list[Job]], list[str]] = lines_of
    """Raises Missing if the program has no such jobs."""


OWN = Program()


class Child:
    """A process of `ringcast_bench.child`, or of the same module of another tree."""

    def __init__(
        self, job: Job, enter: Sequence[str] = (), program: Program = OWN, line: str = ""
    ) -> None:
        """line: the job as the program reads it; empty for its JSON."""
        self.job = job
        self._process = subprocess.Popen(
            [*enter, sys.executable, "-m", program.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program.environment,
        )
        self._rest = b""
        self._tell_line(line or job.to_json())

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    def tell(self, command: object) -> None:
        """Give it the next line."""
        self._tell_line(json.dumps(command))

    def fileno(self) -> int:
        """Where its reports come."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def hear(self, kind: str) -> object | None:
        """Read what there is; its report of this kind, or None while it is not whole.

        Raises BenchFailure when it says something else, or has ended; Missing.
        """
        if b"\n" not in self._rest:
            piece = os.read(self.fileno(), 65_536)
            if not piece:
                raise BenchFailure(f"{self.who} ended: {self._said()}")
            self._rest += piece
            if b"\n" not in self._rest:
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        heard: Report = json.loads(line)
        if "missing" in heard:
            raise Missing(str(heard["missing"]))
        if kind not in heard:
            raise BenchFailure(f"{self.who}: {heard.get('failed', heard)}")
        return heard[kind]

    def kill(self) -> None:
        """Let it crash."""
        self._process.kill()

    def end(self) -> None:
        """Let nothing be left of it."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.kill()
        process.wait(END_WAIT)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def _tell_line(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise BenchFailure(f"{self.who} ended: {self._said()}") from None

    def _said(self) -> str:
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        said = self._process.stderr.read() or b""
        return said.decode(errors="replace").strip()[-STDERR_TAIL:]

    @property
    def who(self) -> str:
        """What it is called in sentences."""
        return f"{self.job.contestant} {self.job.role} {self.job.index}"


def hear_all(children: Sequence[Child], kind: str, until: float) -> list[Report]:
    """The report of this kind of each of them; the first that fails makes all of them fail.

    Raises BenchFailure, Missing.
    """
    heard: dict[Child, object] = {}
    while waiting := [child for child in children if child not in heard]:
        ready = select.select(waiting, [], [], max(0.0, until - time.monotonic()))[0]
        if not ready:
            raise BenchFailure(f"{waiting[0].who} has not said '{kind}' in time")
        for child in ready:
            said = child.hear(kind)
            if said is not None:
                heard[child] = said
    return [cast(Report, heard[child]) for child in children]
