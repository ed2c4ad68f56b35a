"""The continuous audit beside a soak: a process of its own, and what it says."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import IO

from ringcast.demo.process import DemoError
from ringcast.soak.plan import SoakPlan

GRACE_SECONDS = 30
IDLE_SECONDS = GRACE_SECONDS + 15
"""The audit ends by itself this long after the last rows were written: all is judged then."""
START_SECONDS = 300
END_SECONDS = 600
READY = "Following "
VERDICTS = ("CLEAN: ", "BROKEN: ")


class Auditor:
    """`ringcast audit --follow` on the traces of a soak."""

    def __init__(self, plan: SoakPlan) -> None:
        self.alarms: list[str] = []
        """Violations, as they are told."""
        self.verdict = ""
        self._log = plan.logs / "audit.log"
        self._ready = threading.Event()
        words = [str(plan.trace), "--follow", "--grace", str(GRACE_SECONDS)]
        words += ["--idle", str(IDLE_SECONDS), "--spec", str(plan.spec)]
        words += ["--alarms", str(plan.out / "alarms"), "--report", str(plan.out / "now.html")]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ringcast", "audit", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout,), name="soak-audit", daemon=True
        )
        self._reader.start()

    def wait_until_ready(self) -> None:
        """Return when it reads traces. Raises DemoError when it does not come to that."""
        if not self._ready.wait(START_SECONDS) or self._process.poll() is not None:
            raise DemoError(f"the audit did not start: see {self._log}")

    def finish(self) -> None:
        """Wait for its verdict, after the members have ended. Raises DemoError without one."""
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoError(f"the audit came to no verdict: see {self._log}") from None
        self._reader.join()
        if not self.verdict:
            raise DemoError(f"the audit failed: see {self._log}")

    def end(self) -> None:
        """End it at once, if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _read(self, lines: IO[str]) -> None:
        for line in map(str.strip, lines):
            if line.startswith(READY):
                self._ready.set()
            elif line.startswith(VERDICTS):
                self.verdict = line
            elif self._ready.is_set() and line and not line.startswith("late: "):
                self.alarms.append(line)
        self._ready.set()
