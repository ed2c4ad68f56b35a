"""The members of a soak, a process each, and what is done to them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from uuid import uuid4

from ringcast.demo.process import DemoError, MemberProcess
from ringcast.soak.disk import JOURNAL_BYTES, TRACE_BYTES, on_small_disk
from ringcast.soak.inspector import Inspector
from ringcast.soak.network import SoakNetwork, SoakSide
from ringcast.soak.plan import SoakPlan

ENDLESS = 1_000_000_000
"""Messages without an end."""
UNITE_SECONDS = 60.0
"""Seconds after which members that are not in one view count as stuck: several times the sum of
all documented bounds, for a machine that is busy with other things as well."""
LEAVE_SECONDS = 30.0
FULL_SECONDS = 30.0
"""Seconds in which a small disk is full, and that has its effect."""
TRACE_ENDS = "ends here, and the member goes on"
"""What a member says whose trace cannot be written any more."""
POLL_SECONDS = 0.1


class Cast:
    """All members that run. Names are never used twice."""

    def __init__(self, plan: SoakPlan, stack: ExitStack, inspector: Inspector) -> None:
        self._plan, self._stack, self._inspector = plan, stack, inspector
        self._group = f"soak-{uuid4()}"
        self._count = 0
        self.steady: list[MemberProcess] = []
        self.guests: list[MemberProcess] = []
        self.paused: dict[str, MemberProcess] = {}
        self.network: SoakNetwork | None = None
        if plan.network:
            self.network = SoakNetwork(plan.steady + plan.guests, stack)
        self._sides: dict[str, SoakSide] = {}
        """Where each member lives, if they have a network."""

    @property
    def living(self) -> list[MemberProcess]:
        """All members that should be in the group."""
        return [*self.steady, *self.guests]

    @property
    def pids(self) -> dict[str, int]:
        """The processes of the steady members."""
        return {member.name: member.pid for member in self.steady}

    # What can be done to them ---------------------------------------------------------------------

    def settle_in(self) -> None:
        """Start the steady members, all at the same moment."""
        self.steady = [self._start(f"steady-{n + 1}") for n in range(self._plan.steady)]
        self.unite()

    def join(self, port: int = 0, side: SoakSide | None = None, full: str = "") -> str:
        """One more, which sends once it has joined; full: the disk that is too small for it."""
        self._count += 1
        guest = self._start(f"guest-{self._count}", port, side, full)
        self.guests.append(guest)
        guest.wait_for("joined", lambda m: "endpoint" in m.heard, UNITE_SECONDS)
        guest.tell(send=True)
        return guest.name

    def kill(self, guest: MemberProcess) -> None:
        """One is gone without a word."""
        self.paused.pop(guest.name, None)
        guest.kill()
        self._forget(guest)

    def restart(self, guest: MemberProcess) -> str:
        """One is gone without a word, and another starts at once at the same port."""
        port = int(str(guest.heard["endpoint"]).rpartition(":")[2])
        side = self._sides.get(guest.name)
        self.kill(guest)
        return self.join(port, side)

    def leave(self, guest: MemberProcess) -> None:
        """One leaves in order, under load."""
        guest.tell(leave="early")
        guest.wait_for("left", lambda m: "left" in m.heard, LEAVE_SECONDS)
        self._forget(guest)

    def pause(self, member: MemberProcess) -> None:
        """One stands still (SIGSTOP) until `resume`."""
        member.signal(signal.SIGSTOP)
        self.paused[member.name] = member

    def resume(self) -> None:
        """All that stood still go on."""
        for member in self.paused.values():
            member.signal(signal.SIGCONT)
        self.paused.clear()

    def cut(self, source: MemberProcess, target: MemberProcess, *, both: bool) -> None:
        """One does not reach another any more, or neither does, until `mend`."""
        assert self.network is not None
        ways = [(source, target), (target, source)] if both else [(source, target)]
        for one, other in ways:
            self.network.cut(self._sides[one.name], self._sides[other.name])

    def lose(self, target: MemberProcess, percent: int) -> None:
        """Packets to one are lost, until `mend`."""
        assert self.network is not None
        self.network.lose(self._sides[target.name], percent)

    def mend(self) -> None:
        """All links are sound again."""
        if self.network is not None:
            self.network.mend()

    def set_clock(self, member: MemberProcess, seconds: float) -> None:
        """The wall clock of one jumps."""
        member.tell(clock=seconds)

    def fill_journal(self) -> str:
        """A recorder joins whose disk is too small: it leaves, and says why."""
        self._count += 1
        recorder = self._start(f"recorder-{self._count}", full="journal")
        self._seek_failure(recorder)
        self._sides.pop(recorder.name, None)
        self._inspector.ended(recorder.name)
        return recorder.name

    def _seek_failure(self, recorder: MemberProcess) -> None:
        try:
            recorder.wait_for("failed", lambda m: "failed" in m.heard, FULL_SECONDS, may_fail=True)
            if "full" not in str(recorder.heard["failed"]):
                raise DemoError(
                    f"{recorder.name} failed for another reason: {recorder.heard['failed']}"
                )
        finally:
            recorder.end()

    def fill_trace(self) -> str:
        """A guest joins whose trace has too small a disk: it stays a member."""
        name = self.join(full="trace")
        guest, until = self.guests[-1], time.monotonic() + FULL_SECONDS
        while TRACE_ENDS not in guest.log.read_text(errors="replace"):
            if time.monotonic() >= until:
                raise DemoError(f"the trace of {name} found no full disk: see {guest.log}")
            time.sleep(POLL_SECONDS)
        return name

    def attack(self, seed: int, seconds: float) -> None:
        """A hostile process sends to the ports of all for so long."""
        places = [str(member.heard["endpoint"]) for member in self.living]
        enter = () if self.network is None else self.network.sides[0].enter
        module = (sys.executable, "-m", "ringcast.soak.intruder")
        intruder = subprocess.Popen([*enter, *module, self._group, str(seed), *places])
        try:
            intruder.wait(seconds)
        except subprocess.TimeoutExpired:
            intruder.kill()
            intruder.wait()
        else:
            raise DemoError(f"the intruder ended with status {intruder.returncode}")

    def unite(self) -> float:
        """Wait until all are in one view with each other, and no other; how long that took.

        Raises DemoError when it does not come to that.
        """
        began = time.monotonic()
        awake = [member for member in self.living if member.name not in self.paused]
        names = sorted(member.name for member in self.living)
        for member in awake:
            left = began + UNITE_SECONDS - time.monotonic()
            member.wait_for("reached the view of all", lambda m: m.names == names, max(left, 0.1))
        return time.monotonic() - began

    # Beginning and end ----------------------------------------------------------------------------

    def send(self) -> None:
        """The steady members begin to send."""
        for member in self.steady:
            member.tell(send=True)

    def calm_down(self) -> None:
        """All links and members are sound again; all stop to send, and get what is under way."""
        self.resume()
        self.mend()
        self.unite()
        for member in self.living:
            member.tell(calm=True)
        for member in self.living:
            member.wait_for("stopped to send", lambda m: "finished" in m.heard, LEAVE_SECONDS)
        for member in self.living:
            member.tell(end=True)
        expected = {member.name for member in self.living}
        for member in self.living:
            member.wait_for("got everything", lambda m: expected <= m.done, UNITE_SECONDS)

    def digests(self) -> dict[str, str]:
        """A checksum of the replicated state of each member, once all have calmed down."""
        for member in self.living:
            member.tell(digest=True)
        for member in self.living:
            member.wait_for("summed its state up", lambda m: "digest" in m.heard, LEAVE_SECONDS)
        return {member.name: str(member.heard["digest"]) for member in self.living}

    @property
    def writers(self) -> int:
        """How many members have ever written to the replicated state."""
        return max(member.number("writers") for member in self.living)

    def see_guests_off(self) -> None:
        """All guests leave, so that the steady members are in the company of the beginning."""
        for guest in list(self.guests):
            self.leave(guest)
        self.unite()

    def finish(self) -> None:
        """All leave in order."""
        for member in reversed(self.steady):
            member.tell(leave=True)
            member.wait_for("left", lambda m: "left" in m.heard, LEAVE_SECONDS)
            member.end()
            self._inspector.ended(member.name)
        self.steady = []

    def _start(
        self, name: str, port: int = 0, side: SoakSide | None = None, full: str = ""
    ) -> MemberProcess:
        plan = self._plan
        seconds = ENDLESS / plan.rate
        side = side or self._free_side()
        spec = plan.spec_at(port, "" if side is None else side.address)
        trace = plan.disk if full == "trace" else plan.trace
        words = [self._group, name, "--trace", str(trace), "--spec", str(spec)]
        words += ["--messages", str(ENDLESS), "--seconds", str(seconds), "--size", str(plan.size)]
        words += ["--journal", str(plan.disk)] if full == "journal" else ["--replica"]
        wrapper: Sequence[str] = () if side is None else side.enter
        if full:
            nbytes = JOURNAL_BYTES if full == "journal" else TRACE_BYTES
            wrapper = (*wrapper, *on_small_disk(plan.disk, nbytes))
        member = MemberProcess(name, words, plan.logs / f"{name}.log", wrapper)
        if side is not None:
            self._sides[name] = side
        self._stack.callback(member.end)
        return member

    def _free_side(self) -> SoakSide | None:
        """Where nobody lives, if the members have a network."""
        if self.network is None:
            return None
        return next(side for side in self.network.sides if side not in self._sides.values())

    def _forget(self, guest: MemberProcess) -> None:
        guest.end()
        self._sides.pop(guest.name, None)
        self.guests.remove(guest)
        self._inspector.ended(guest.name)
