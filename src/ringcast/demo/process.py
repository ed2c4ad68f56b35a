"""A process of the demo: started, told, heard within a time, and ended by its id."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ringcast.errors import RingcastError

WAIT = 60.0
"""Seconds that anything a member is to do may take."""
END_WAIT = 10.0
MEMBER_COMMAND = [sys.executable, "-m", "ringcast.demo.member"]
"""How a member is started."""
LOG_TAIL = 500
"""How many characters of a member's own words an error repeats."""


class DemoError(RingcastError):
    """The demo did not come to its end; the sentence says where, and where to look."""


class MemberProcess:
    """A process of `ringcast.demo.member`, and the last thing that it reported of each kind."""

    def __init__(
        self, name: str, words: Sequence[str], log: Path, wrapper: Sequence[str] = ()
    ) -> None:
        """wrapper: the command that runs it, in a namespace say."""
        self.name = name
        self.log = log
        self.heard: dict[str, object] = {}
        self.done: set[str] = set()
        """Senders whose last message has arrived."""
        self.killed = False
        self._news = threading.Condition()
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*wrapper, *MEMBER_COMMAND, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"hear-{name}", daemon=True)
        self._reader.start()

    def tell(self, **command: object) -> None:
        """Give it a command. Raises DemoError when it is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._error("is gone") from None

    def wait_for(
        self,
        what: str,
        is_so: Callable[[MemberProcess], bool],
        seconds: float = WAIT,
        *,
        may_fail: bool = False,
    ) -> None:
        """Wait until its reports make it so. Raises DemoError: it died, or the time is over.

        may_fail: a report that it has failed is not an error.
        """
        until = time.monotonic() + seconds
        with self._news:
            while not is_so(self):
                if not self._reader.is_alive():
                    raise self._error(f"ended before it {what}")
                if time.monotonic() >= until:
                    raise self._error(f"has not {what} within {seconds:g} seconds")
                self._news.wait(0.25)
            if "failed" in self.heard and not may_fail:
                raise self._error(f"failed: {self.heard['failed']}")

    @property
    def names(self) -> list[str]:
        """The members of its view."""
        view = self.heard.get("view")
        return sorted(view) if isinstance(view, list) else []

    def number(self, kind: str) -> int:
        """A number that it reported, 0 before it did."""
        value = self.heard.get(kind)
        return value if isinstance(value, int) else 0

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it without a warning (SIGKILL)."""
        self.killed = True
        self._process.kill()
        self._process.wait(END_WAIT)

    def end(self) -> None:
        """Let nothing be left of it; one that has left ends by itself."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(END_WAIT if "left" in self.heard else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_WAIT)
        self._reader.join(END_WAIT)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report: dict[str, object] = json.loads(line)
            with self._news:
                self.heard.update(report)
                if "done" in report:
                    self.done.add(str(report["done"]))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def _error(self, what: str) -> DemoError:
        said = self.log.read_text(errors="replace").strip()[-LOG_TAIL:]
        words = f", and said: {said}" if said else ""
        return DemoError(f"the member {self.name} {what}{words} (see {self.log})")
