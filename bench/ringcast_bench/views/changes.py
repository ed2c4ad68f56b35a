"""How long a group takes to notice what happens to its members, and how long senders wait for it.

Real processes that all send: one is killed, the coordinator and the next are, one starts again at
its port, one joins, one leaves, and a partition heals. Each is repeated, since the times depend on
what the timers are doing at that moment.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import cast

from ringcast import StackSpec, presets
from ringcast.transports import Tcp, Udp
from ringcast_bench.job import BenchFailure, Job, Missing, Report
from ringcast_bench.namespace import Firewall, Namespace
from ringcast_bench.process import Child, hear_all
from ringcast_bench.run import open_all

SECONDS_MAX = 90.0
"""How long one run may take."""
PLAY_TENTHS = 40
"""How long members send, in tenths of a second."""
PARTED_TENTHS = 160
"""The same where the network falls apart and heals."""
APART_SECONDS = 5.0
"""How long nobody reaches anybody: longer than it takes to notice."""
SETTLE_SECONDS = 0.5
"""Seconds of sending before something happens."""
STACKS: dict[str, Callable[[], StackSpec]] = {
    "loopback": presets.loopback,
    "tcp": lambda: presets.tcp(when_alone="create"),
    "lan": lambda: presets.lan(bind="127.0.0.1"),
}
USUAL_STACKS = ("loopback", "tcp")
DEFAULT_STACKS = ("lan", "tcp")
"""Those with the default settings of discovery."""


@dataclass(frozen=True, kw_only=True)
class ChangeTimes:
    """One kind of change over one transport, repeated."""

    what: str
    stack: str
    members: int
    seconds: tuple[float, ...]
    """Per run: from the change to the view that it leads to at the last member."""
    stalls: tuple[float, ...]
    """Per run and member: its longest send."""

    def line(self) -> str:
        """One row of the table."""
        if not self.seconds:
            return f"{self.what:<34}{self.stack:<10}{self.members:>3}  left out"
        stalls = [1_000 * value for value in self.stalls]
        took, waited = _spread(self.seconds, 0.95, 3), _spread(stalls, 0.99, 1)
        return f"{self.what:<34}{self.stack:<10}{self.members:>3}{took}{waited}"


HEADING = (
    f"{'what':<34}{'stack':<10}{'n':>3}{'median s':>10}{'p95 s':>10}{'worst s':>10}"
    f"{'stall ms':>10}{'p99':>10}{'worst':>10}"
)


def _spread(values: Sequence[float], quantile: float, digits: int) -> str:
    ranked = sorted(values)
    high = ranked[min(len(ranked) - 1, int(quantile * len(ranked)))]
    return "".join(f"{value:>10.{digits}f}" for value in (median(ranked), high, ranked[-1]))


class WitnessGroup:
    """One group of witnesses."""

    def __init__(self, stack: str, members: int, namespace: Namespace) -> None:
        self._until = time.monotonic() + SECONDS_MAX
        self._enter = namespace.enter
        self._namespace = namespace
        self.ports = _free_ports(members)
        self._stack, self.members = stack, members
        self.children: list[Child] = []
        self.late: list[Child] = []

    def job(
        self, index: int, role: str = "witness", api: str = "batch", tenths: int = PLAY_TENTHS
    ) -> Job:
        """The job of a member at its port."""
        port = self.ports[index] if index < len(self.ports) else 0
        transport = Tcp(port=port) if self._stack == "tcp" else Udp(port=port)
        spec = STACKS[self._stack]().replace(transport)
        return Job(
            contestant="ringcast", role=role, index=index, api=api, count=tenths, size=200,
            spec=spec.to_toml(), senders=self.members,
        )  # fmt: skip

    def part(self, seconds: float) -> float:
        """Nobody reaches anybody for so long; when that was over. Raises Missing."""
        with Firewall(self._namespace, 100, kinds="{ tcp, udp }"):
            time.sleep(seconds)
        return time.monotonic()

    def start(self, jobs: Sequence[Job]) -> None:
        """All join and begin to send."""
        for job in jobs:
            self.children.append(Child(job, self._enter))
        open_all(self.children, self._until)
        for child in self.children:
            if child.job.role == "witness":
                child.tell({"go": True})
        time.sleep(SETTLE_SECONDS)

    def kill(self, *indexes: int) -> float:
        """Kill members; when that was."""
        now = time.monotonic()
        for index in indexes:
            self.children[index].kill()
        return now

    def hear(self, without: Sequence[int] = ()) -> list[Report]:
        """What the rest has seen."""
        rest = [c for n, c in enumerate(self.children) if n not in without]
        return hear_all(rest, "played", self._until)

    def again(self, index: int) -> float:
        """Start a member again at its port; seconds until it has joined."""
        began = time.monotonic()
        child = Child(self.job(index), self._enter)
        self.late.append(child)
        other = 0 if index else 1
        child.tell({"endpoint": f"127.0.0.1:{self.ports[other]}"})
        hear_all([child], "opened", self._until)
        return time.monotonic() - began

    def end(self) -> None:
        """Let nothing be left."""
        for child in (*self.children, *self.late):
            child.end()


def _free_ports(count: int) -> list[int]:
    """Ports that no process has, and that the kernel gives to none that asks for any port."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with ExitStack() as probes:
        ports = (port for port in range(first - 1, 1_023, -1) if _is_free(port, probes))
        return list(islice(ports, count))


def _is_free(port: int, probes: ExitStack) -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        probe = probes.enter_context(socket.socket(socket.AF_INET, kind))
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def until_view(reports: Sequence[Report], since: float, members: int) -> float:
    """Seconds until the last of them saw a view of this size."""
    times = []
    for report in reports:
        views = cast(list[tuple[float, int]], report["views"])
        seen = [at for at, size in views if at > since and size == members]
        if not seen:
            raise BenchFailure(f"a member saw no view of {members} members")
        times.append(seen[0])
    return max(times) - since


def stalls_of(reports: Sequence[Report]) -> list[float]:
    """The longest send of each of them."""
    return [cast(float, report["stall"]) for report in reports]


Measured = tuple[float, list[float]]
"""Seconds until the view, and the longest send of each member."""


def _crash(run: WitnessGroup, *victims: int) -> Measured:
    run.start([run.job(index) for index in range(run.members)])
    since = run.kill(*victims)
    reports = run.hear(without=victims)
    return until_view(reports, since, run.members - len(victims)), stalls_of(reports)


def _restart(run: WitnessGroup, victim: int) -> Measured:
    run.start([run.job(index) for index in range(run.members)])
    run.kill(victim)
    seconds = run.again(victim)
    return seconds, stalls_of(run.hear(without=[victim]))


def _join(run: WitnessGroup) -> Measured:
    jobs = [run.job(index) for index in range(run.members - 1)]
    run.start([*jobs, run.job(run.members, role="form")])
    since = time.monotonic()
    run.children[-1].tell({"go": True})
    reports = run.hear()[:-1]
    return until_view(reports, since, run.members), stalls_of(reports)


def _leave(run: WitnessGroup) -> Measured:
    last = run.members - 1
    run.start([run.job(n, api="leave" if n == last else "batch") for n in range(run.members)])
    *reports, leaver = run.hear()
    return until_view(reports, cast(float, leaver["acted"]), last), stalls_of(reports)


def _heal(run: WitnessGroup) -> Measured:
    run.start([run.job(index, tenths=PARTED_TENTHS) for index in range(run.members)])
    since = run.part(APART_SECONDS)
    reports = run.hear()
    return until_view(reports, since, run.members), stalls_of(reports)


@dataclass(frozen=True, kw_only=True)
class ChangeKind:
    """Something that happens to a group."""

    what: str
    """What happens, in words."""
    measure: Callable[[WitnessGroup], Measured]
    members_min: int = 2
    """The smallest group that it can happen to."""
    stacks: Sequence[str] = USUAL_STACKS
    """The stacks that it is measured with, unless others are asked for."""


CHANGES: dict[str, ChangeKind] = {
    "kill": ChangeKind(what="one is killed", measure=lambda run: _crash(run, run.members - 1)),
    "kill-coordinator": ChangeKind(
        what="the coordinator is killed", measure=lambda run: _crash(run, 0)
    ),
    "kill-two": ChangeKind(
        what="coordinator and next are killed",
        measure=lambda run: _crash(run, 0, 1),
        members_min=3,
    ),
    "kill-three": ChangeKind(
        what="the first three are killed", measure=lambda run: _crash(run, 0, 1, 2), members_min=4
    ),
    "restart": ChangeKind(
        what="start again at the same port", measure=lambda run: _restart(run, run.members - 1)
    ),
    "restart-coordinator": ChangeKind(
        what="the coordinator starts again", measure=lambda run: _restart(run, 0)
    ),
    "join": ChangeKind(what="one joins", measure=_join),
    "leave": ChangeKind(what="one leaves", measure=_leave),
    "heal": ChangeKind(
        what="all are cut off, until it heals", measure=_heal, stacks=DEFAULT_STACKS
    ),
}
"""Each kind of change, by its name."""


def changes(
    sizes: Sequence[int],
    namespace: Namespace,
    repeats: int,
    kinds: Sequence[str] = (),
    stacks: Sequence[str] = (),
) -> Iterator[ChangeTimes]:
    """Every change, over every stack, in groups of these sizes. Raises BenchFailure.

    kinds, stacks: only these, by name."""
    for members in sizes:
        for kind in [CHANGES[name] for name in kinds or CHANGES]:
            for stack in (stacks or kind.stacks) if members >= kind.members_min else ():
                yield _repeat(kind, stack, members, namespace, repeats)


def _repeat(
    kind: ChangeKind, stack: str, members: int, namespace: Namespace, repeats: int
) -> ChangeTimes:
    measured = list[Measured]()
    for _ in range(repeats):
        run = WitnessGroup(stack, members, namespace)
        try:
            measured.append(kind.measure(run))
        except Missing:
            break
        finally:
            run.end()
    return ChangeTimes(
        what=kind.what,
        stack=stack,
        members=members,
        seconds=tuple(seconds for seconds, _ in measured),
        stalls=tuple(stall for _, stalls in measured for stall in stalls),
    )
