"""Real groups for tests: stacks that notice crashes quickly, groups in threads, and processes."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ringcast import Batch, Event, StackSpec, Timeout, presets, sync
from ringcast.core.batch import Message
from ringcast.parts.discovery import Discovery
from ringcast.parts.failure import Failure
from ringcast.transports import Memory, Tcp, Udp

SOON = 15.0
"""Seconds after which something that has to happen soon counts as not happening."""

QUICK = Failure(interval=0.1, timeout=0.6, verify=0.3)
"""A crash is noticed within about 1.1 seconds."""

ROOT = Path(__file__).resolve().parents[2]


def group_name() -> str:
    """A group that no other test is in."""
    return f"test-{uuid4()}"


# Stacks -------------------------------------------------------------------------------------------


def memory() -> StackSpec:
    """Members of one process."""
    return presets.loopback().replace(Memory(), QUICK)


def multicast() -> StackSpec:
    """UDP multicast on the loopback interface."""
    return presets.loopback().replace(QUICK)


def seeded(transport: Udp | Tcp, seed: str | None) -> StackSpec:
    """Members that are found by a seed; the first one has none."""
    found = Discovery(
        multicast=False,
        seeds=() if seed is None else (seed,),
        timeout=0.1,
        interval=0.05,
        merge_interval=0.5,
        alone="found" if seed is None else "wait",
    )
    return presets.loopback().replace(QUICK, found, transport)


def tcp(seed: str | None) -> StackSpec:
    """TCP on the loopback interface."""
    return seeded(Tcp(), seed)


def unicast(seed: str | None) -> StackSpec:
    """UDP without multicast."""
    return seeded(Udp(multicast=""), seed)


SPECS: dict[str, Callable[[str | None], StackSpec]] = {
    "memory": lambda seed: memory(),
    "multicast": lambda seed: multicast(),
    "tcp": tcp,
    "unicast": unicast,
}
"""Stacks for every transport, given the endpoint of a member that is there already."""


# Groups in this process ---------------------------------------------------------------------------


@contextmanager
def members(count: int, kind: str, **settings: object) -> Iterator[list[sync.Group]]:
    """So many members of one group, in one view."""
    name, joined = group_name(), list[sync.Group]()
    with ExitStack() as stack:
        for number in range(count):
            seed = joined[0].endpoint if joined else None
            spec = SPECS[kind](seed)
            if settings:
                spec = spec.replace(**settings)
            group = sync.join(name, spec, name=f"m{number}", timeout=SOON)
            stack.callback(group.close)
            joined.append(group)
        for group in joined:
            await_view(group, count)
        yield joined


def await_view(group: sync.Group, size: int) -> None:
    """Take events until the view has so many members. Raises ringcast.Timeout."""
    events = group.events(timeout=SOON)
    while len(group.view) != size:
        next(events)


def take(group: sync.Group, count: int) -> list[Message]:
    """The next messages."""
    return [group.receive(timeout=SOON) for _ in range(count)]


def take_bytes(group: sync.Group, count: int) -> list[bytes]:
    """What the next messages say."""
    return [bytes(message.payload) for message in take(group, count)]


def take_events(group: sync.Group, count: int) -> list[Event]:
    """The next events, until so many messages were among them."""
    taken: list[Event] = []
    for event in group.events(timeout=SOON):
        taken.append(event)
        count -= len(event) if isinstance(event, Batch) else 0
        if count <= 0:
            break
    return taken


def come_back(group: sync.Group) -> None:
    """Ask for more, so that what was taken counts as delivered; there must be no more."""
    with suppress(Timeout):
        message = group.receive(timeout=0.01)
        raise AssertionError(f"{message} came as well")


def numbered(prefix: str, count: int) -> list[bytes]:
    """Messages that say who sent them and which one it is."""
    return [f"{prefix}-{number}".encode() for number in range(count)]


@contextmanager
def running(target: Callable[[], None]) -> Iterator[threading.Thread]:
    """A thread beside the test, whose errors are the test's."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            target()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread
    thread.join(SOON)
    assert not thread.is_alive(), "the thread did not end"
    if failures:
        raise failures[0]


# Groups in processes of their own -----------------------------------------------------------------


class Process:
    """A member in a process of its own; `tests/runtime/process.py` is what it runs."""

    def __init__(self, group: str, name: str, spec: StackSpec, *wrapper: str) -> None:
        command = [*wrapper, sys.executable, str(ROOT / "tests/runtime/process.py"), group, name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self.name = name
        self.group = group
        self._lines: queue.Queue[str] = queue.Queue()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.tell(spec=spec.to_toml())
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
                line = self._lines.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                raise AssertionError(f"{self.name} did not report {kind} in time") from None
            report: dict[str, object] = json.loads(line)
            if not kind or kind in report:
                return report

    def hear_view(self, *names: str) -> dict[str, object]:
        """The report of a view with just these members."""
        while True:
            report = self.hear("view")
            view = report["view"]
            assert isinstance(view, list)
            if sorted(view) == sorted(names):
                return report

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
            self._lines.put(line)


@contextmanager
def processes(*names: str, kind: str = "multicast") -> Iterator[list[Process]]:
    """Members in processes of their own, in one view."""
    group, started = group_name(), list[Process]()
    try:
        seed = None
        for name in names:
            started.append(Process(group, name, SPECS[kind](seed)))
            if seed is None:
                seed = str(started[0].hear("joined")["endpoint"])
        for process in started:
            process.hear_view(*names)
        yield started
    finally:
        for process in started:
            process.end()
