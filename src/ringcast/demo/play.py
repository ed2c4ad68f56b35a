"""The demo's story: a group of processes forms and sends, one is killed, one joins, all leave."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ringcast import presets
from ringcast.control.failure_detector import FailureDetector
from ringcast.core.stack.part import Spec
from ringcast.demo.process import MemberProcess
from ringcast.errors import ConfigError
from ringcast.layers.faults import Faults
from ringcast.spec import StackSpec

NAMES = ("ann", "ben", "cleo", "dora", "eli", "finn", "gus", "hana", "ivo", "joy")
RECORDER, JOINER = "recorder", "newcomer"
KILL_AT = 0.3
"""The share of its messages that the victim has sent when it is killed."""
MARKER = ".ringcast-demo"
"""Marks a directory that a demo made, and that the next one may clear."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class DemoPlan:
    """What is to be played."""

    out: Path
    members: int = 5
    """How many send from the beginning, beside a recorder."""
    messages: int = 20_000
    """How many each of them sends."""
    size: int = 100
    seconds: float = 10.0
    """How long each takes to send them, if the group keeps up."""
    loss: float = 0.05
    added: tuple[Spec, ...] = ()
    """Protocols that the stack has besides; what they promise is audited as well."""

    def __post_init__(self) -> None:
        if not 3 <= self.members <= len(NAMES):
            raise ConfigError(f"--members is {self.members}: give 3 to {len(NAMES)}")
        if self.messages < 1 or self.seconds <= 0 or not 1 <= self.size <= 10_000:
            raise ConfigError("give at least one message, some seconds, and 1 to 10,000 bytes")
        if not 0 <= self.loss <= 0.5:
            raise ConfigError(f"--loss is {self.loss}: give a chance from 0 to 0.5")

    @property
    def trace(self) -> Path:
        """Where all members write their traces."""
        return self.out / "trace"

    @property
    def journal(self) -> Path:
        """Where the recorder writes."""
        return self.out / "journal"

    @property
    def logs(self) -> Path:
        """Where members complain, if they have to, and where their stacks are written."""
        return self.out / "logs"

    def stack(self, seeds: Iterable[str] = ()) -> StackSpec:
        """TCP on the loopback interface, which works everywhere, and loses datagrams on purpose."""
        stack = presets.tcp(seeds=tuple(seeds), when_alone="auto" if seeds else "create").replace(
            FailureDetector(interval=0.25, timeout=2.0, verify=0.5),
        )
        return stack.insert(Faults(loss=self.loss), *self.added)


@dataclass
class Played:
    """What happened, as far as the members themselves can tell."""

    killed: str = ""
    joined: str = ""
    expelled_after: float = 0.0
    """Seconds from the kill to the survivors' view without the victim."""
    lost: dict[str, int] = field(default_factory=dict)
    """Member → datagrams that were thrown away on purpose."""
    recorded: int = 0
    seconds: float = 0.0


def play(plan: DemoPlan, say: Say) -> Played:
    """Play it. Raises ConfigError when there is no place for it, DemoError when it gets stuck."""
    _clear(plan)
    began = time.monotonic()
    with ExitStack() as stack:
        cast = _Cast(plan, stack, say)
        cast.form()
        cast.send()
        cast.kill()
        cast.join()
        cast.finish()
        cast.leave()
    cast.played.seconds = time.monotonic() - began
    return cast.played


class _Cast:
    """All processes of the story, which ends none of them outlives."""

    def __init__(self, plan: DemoPlan, stack: ExitStack, say: Say) -> None:
        self.played = Played()
        self._plan, self._stack, self._say = plan, stack, say
        self._group = f"demo-{uuid4()}"
        self._senders: list[MemberProcess] = []
        self._seeds: list[str] = []
        self._recorder: MemberProcess | None = None

    @property
    def _all(self) -> list[MemberProcess]:
        members = self._senders if self._recorder is None else [*self._senders, self._recorder]
        return [member for member in members if not member.killed]

    def form(self) -> None:
        """Start all members, and wait for one view with all of them."""
        plan = self._plan
        self._say(
            f"Starting {plan.members} members and a recorder, a process each: TCP on the loopback"
            f" interface, {plan.loss:.0%} of all datagrams thrown away on arrival."
        )
        founder = self._start_sender(NAMES[0])
        self._await_joined(founder)
        self._seeds.append(str(founder.heard["endpoint"]))
        for name in NAMES[1 : plan.members]:
            self._start_sender(name)
        self._recorder = self._start(RECORDER, "--journal", str(plan.journal))
        for member in self._all:
            self._await_joined(member)
        self._seeds = [str(member.heard["endpoint"]) for member in self._senders]
        self._await_view()
        self._say(f"The group has formed: {', '.join(m.name for m in self._all)}.")

    def send(self) -> None:
        """All members begin to send."""
        plan = self._plan
        for member in self._senders:
            member.tell(send=True)
        self._say(
            f"Each of the {plan.members} sends {plan.messages:,} messages of {plan.size} bytes in"
            f" about {plan.seconds:g} seconds."
        )

    def kill(self) -> None:
        """Kill one in the middle of it."""
        victim, share = self._senders[-2], self._plan.messages * KILL_AT
        victim.wait_for("sent enough to be killed", lambda m: m.number("sent") >= share)
        victim.kill()
        killed_at = time.monotonic()
        self.played.killed = victim.name
        self._say(f"Killed {victim.name} with SIGKILL, which had sent {victim.number('sent'):,}.")
        self._await_view()
        self.played.expelled_after = time.monotonic() - killed_at
        self._say(
            f"The survivors have a view without {victim.name}"
            f" {self.played.expelled_after:.1f} s later."
        )

    def join(self) -> None:
        """Have one more join while the others send."""
        joiner = self._start_sender(JOINER)
        self._await_joined(joiner)
        self._await_view()
        joiner.tell(send=True)
        self.played.joined = joiner.name
        sending = [m for m in self._senders[:-1] if not m.killed and "finished" not in m.heard]
        load = "under load" if sending else "when the others had already sent everything"
        self._say(f"{joiner.name} has joined {load}, and sends as well.")

    def finish(self) -> None:
        """Wait until all have sent everything, and have got everything."""
        living = [member for member in self._senders if not member.killed]
        for member in living:
            member.wait_for("sent everything", lambda m: "finished" in m.heard)
        for member in living:
            member.tell(end=True)
        expected = {member.name for member in living}
        for member in self._all:
            member.wait_for("got everything", lambda m: expected <= m.done)
        self._say("All messages are sent, and have come everywhere.")

    def leave(self) -> None:
        """Let them leave in order, the youngest first and the recorder at last."""
        members = self._all
        for member in [*reversed(members[:-1]), members[-1]]:
            member.tell(leave=True)
            member.wait_for("left", lambda m: "left" in m.heard)
            self.played.lost[member.name] = member.number("lost")
        self.played.recorded = members[-1].number("recorded")
        self._say("All have left in order.")

    # ----------------------------------------------------------------------------------------------

    def _start_sender(self, name: str) -> MemberProcess:
        plan = self._plan
        # A member that joins later sends for a shorter time, so that all end together.
        part = 0.5 if name == JOINER else 1.0
        sending = ("--messages", max(1, int(plan.messages * part)), "--size", plan.size)
        words = [*map(str, sending), "--seconds", str(plan.seconds * part)]
        member = self._start(name, *words)
        self._senders.append(member)
        return member

    def _start(self, name: str, *words: str) -> MemberProcess:
        plan = self._plan
        spec = plan.logs / f"{name}.toml"
        spec.write_text(plan.stack(self._seeds).to_toml())
        common = [self._group, name, "--trace", str(plan.trace), "--spec", str(spec)]
        member = MemberProcess(name, [*common, *words], plan.logs / f"{name}.log")
        self._stack.callback(member.end)
        return member

    def _await_joined(self, member: MemberProcess) -> None:
        member.wait_for("joined", lambda m: "endpoint" in m.heard)

    def _await_view(self) -> None:
        """Wait until all that live are in one view with each other, and nobody else."""
        names = sorted(member.name for member in self._all)
        for member in self._all:
            member.wait_for("reached the view of all", lambda m: m.names == names)


def _clear(plan: DemoPlan) -> None:
    """Make the directory, or clear what an earlier demo has left there. Raises ConfigError."""
    out, marker = plan.out, plan.out / MARKER
    try:
        if out.exists() and not marker.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"{out} is not empty, and not of a demo: name another with --out")
        for place in (plan.trace, plan.journal, plan.logs):
            shutil.rmtree(place, ignore_errors=True)
        for place in (plan.trace, plan.logs):
            place.mkdir(parents=True)
        (out / "report.html").unlink(missing_ok=True)
        marker.touch()
    except OSError as error:
        raise ConfigError(f"nothing can be written to {out}: {error.strerror}") from None
