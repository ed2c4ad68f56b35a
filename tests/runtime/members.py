"""Members in processes of their own: told, heard within a time, compared, and ended by their id."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ringcast import StackSpec
from tests.runtime.support import ROOT, SOON, SPECS, group_name

NEWS = threading.Condition()
"""Told whenever any member reports a view."""


@dataclass
class Stay:
    """A member's time in one view."""

    view: str
    names: list[str]
    past: object = None
    """What it delivered there, once it is over."""
    next: str | None = None
    """The view that it went on to, or "left"; None while it is there, and when it was killed."""


class Process:
    """A member in a process of its own; `program` is what it runs."""

    program = "tests/runtime/process.py"

    def __init__(
        self, group: str, name: str, spec: StackSpec, *wrapper: str, every: int = 100
    ) -> None:
        """every: after how many messages of a sender it reports."""
        program = str(ROOT / self.program)
        command = [*wrapper, sys.executable, "-S", program, group, name]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        self.name = name
        self.group = group
        self.endpoint = ""
        """Where it is reached, for the test to note."""
        self.stays: list[Stay] = []
        """The views that it was in, as far as it has said."""
        self._lines: queue.Queue[dict[str, object]] = queue.Queue()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.tell(spec=spec.to_toml(), every=every)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def tell(self, **command: object) -> None:
        """Give the process a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def hear(self, kind: str, seconds: float = SOON) -> dict[str, object]:
        """The next report of this kind, or of any for ""; others before it are passed over."""
        until = time.monotonic() + seconds
        while True:
            try:
                report = self._lines.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                raise AssertionError(f"{self.name} did not report {kind} in time") from None
            if not kind or kind in report:
                return report

    def hear_view(self, *names: str, seconds: float = SOON) -> dict[str, object]:
        """The report of a view with just these members."""
        until = time.monotonic() + seconds
        while True:
            report = self.hear("view", until - time.monotonic())
            view = report["view"]
            assert isinstance(view, list)
            if sorted(view) == sorted(names):
                return report

    @property
    def pid(self) -> int:
        """The id of the process; of what runs it, if that is still there."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def end(self) -> None:
        """Let nothing be left of it."""
        self._process.kill()
        self._process.wait(SOON)
        self._reader.join(SOON)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report: dict[str, object] = json.loads(line)
            if "past" in report:
                with NEWS:
                    self._note(report)
                    NEWS.notify_all()
            self._lines.put(report)

    def _note(self, report: dict[str, object]) -> None:
        if self.stays:
            self.stays[-1].past, self.stays[-1].next = report["past"], str(report.get("id", "left"))
        if "view" in report:
            names = report["view"]
            assert isinstance(names, list)
            self.stays.append(Stay(str(report["id"]), names))


@contextmanager
def processes(
    *names: str, kind: str = "multicast", every: int = 100, group: str = ""
) -> Iterator[list[Process]]:
    """Members in processes of their own, in one view."""
    group, started = group or group_name(), list[Process]()
    try:
        seed = None
        for name in names:
            started.append(Process(group, name, SPECS[kind](seed), every=every))
            if seed is None:
                seed = str(started[0].hear("joined")["endpoint"])
        for process in started:
            process.hear_view(*names)
        yield started
    finally:
        for process in started:
            process.end()


def await_one_view(members: Sequence[Process], seconds: float) -> str:
    """Wait until all are in the same view, with each other and nobody else; which one that is."""
    until = time.monotonic() + seconds
    names = sorted(member.name for member in members)
    with NEWS:
        while True:
            latest = [member.stays[-1] for member in members if member.stays]
            views = {stay.view for stay in latest}
            is_one = len(latest) == len(members) and len(views) == 1
            if is_one and sorted(latest[0].names) == names:
                return views.pop()
            if not NEWS.wait(until - time.monotonic()):
                raise AssertionError(f"{names} are not in one view in time: {latest}")


def expect_agreement(members: Sequence[Process]) -> int:
    """All members of a view know the same members of it; those that went on together delivered the
    same in it. Returns how many stays were compared.
    """
    names: dict[str, list[str]] = {}
    passages: dict[tuple[str, str], list[tuple[str, object]]] = defaultdict(list)
    for member in members:
        for stay in member.stays:
            assert names.setdefault(stay.view, stay.names) == stay.names, f"view {stay.view}"
            if stay.next is not None and stay.next != "left":
                passages[stay.view, stay.next].append((member.name, stay.past))
    for passage, told in passages.items():
        (first, expected), *others = told
        for name, past in others:
            assert past == expected, f"{first} and {name} differ about {passage}"
    return sum(len(told) for told in passages.values() if len(told) > 1)


def hear_all(
    process: Process, wanted: dict[str, int], seconds: float = SOON
) -> list[dict[str, object]]:
    """Until these messages of each were taken, all of them in order; everything that was said."""
    until = time.monotonic() + seconds
    heard: list[dict[str, object]] = []
    missing = dict(wanted)
    while missing:
        report = process.hear("", until - time.monotonic())
        heard.append(report)
        if "got" in report:
            assert report["in_order"], (
                f"{process.name} got messages of {report['from']} out of order"
            )
            name, count = str(report["from"]), report["got"]
            assert isinstance(count, int)
            if count >= missing.get(name, count + 1):
                del missing[name]
    return heard
