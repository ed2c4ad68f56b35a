"""A soak from its beginning to its end: chance does things to members, and all is watched."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from ringcast.demo.process import DemoError, MemberProcess
from ringcast.soak.auditor import Auditor
from ringcast.soak.cast import Cast
from ringcast.soak.inspector import Inspector
from ringcast.soak.plan import SoakPlan, prepare
from ringcast.soak.vitals import Vitals
from ringcast.trace.rules import rules_of
from ringcast.trace.violations import Violation

ACTIONS = {"join": 4, "kill": 3, "restart": 2, "leave": 2, "pause": 2, "kill two": 1}
"""What may happen, and how often one happens beside the others."""
OUTSIDE = {"intruder": 1, "clock jump": 1}
"""What a process outside the group does, or the operator of a machine."""
NAMESPACE_FAULTS = {
    **{"cut pair": 2, "cut one way": 2, "lose packets": 1},
    **{"full journal": 1, "full trace": 1},
}
"""What may happen besides where members have namespaces of their own."""
CLOCK_SECONDS = 3_600.0
"""How far a clock jumps at the most, forward or back."""
JOINS = ("join", "full journal", "full trace")
"""What needs room for one more guest."""
LEAST_GUESTS = {"kill": 1, "restart": 1, "leave": 1, "kill two": 2}
CUT_SECONDS = (0.5, 8.0)
"""How long a link fails: up to twice the time after which one of the two has to go."""
LOSS_PERCENT = (5, 30)
ATTACK_SECONDS = (1.0, 3.0)
PAUSE_SECONDS = (0.3, 6.0)
"""How long one stands still: up to twice the time after which it is suspected."""
BETWEEN_SECONDS = (0.5, 4.0)
"""How long nothing happens after the members are in one view again."""
HASTY_CHANCE = 0.25
"""How often the next thing happens before they are."""
LOOK_SECONDS = 2.0
"""How often traces are looked at while nothing happens."""
MINUTE = 60.0
LOSSES = ("gap", "head", "tail", "survivors", "purged-undelivered", "acked-undelivered")
"""The causes of violations that are messages which never arrived."""
ALARMS_SHOWN = 20

Say = Callable[[str], None]


@dataclass
class SoakOutcome:
    """What a soak has found."""

    plan: SoakPlan
    vitals: Vitals
    seconds: float = 0.0
    actions: Counter[str] = field(default_factory=Counter)
    views: int = 0
    deliveries: int = 0
    slowest_view: float = 0.0
    """The longest that members took to be in one view again, after what was done to them."""
    violations: list[Violation] = field(default_factory=list)
    growth: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    """What the continuous audit told, if there was one."""
    audit: str = ""
    """Its verdict."""
    digests: dict[str, str] = field(default_factory=dict)
    """A checksum of the replicated state of each member at the end."""
    writers: int = 0
    """How many members have written to that state, most of them gone by then."""
    stuck: str = ""
    """Where it did not go on; empty when it ended."""

    @property
    def faults(self) -> int:
        """What was done to the members, beside joins and leaves in order."""
        return sum(n for action, n in self.actions.items() if action not in ("join", "leave"))

    @property
    def lost(self) -> int:
        """Messages that a member should have delivered and did not."""
        broken = [violation for violation in self.violations if violation.cause in LOSSES]
        return sum((v.last or 0) - (v.first or 0) + 1 for v in broken)

    @property
    def is_clean(self) -> bool:
        """Whether every guarantee held, nothing grew, and no member was stuck."""
        return not self.problems()

    @property
    def differences(self) -> list[str]:
        """Members whose replicated state is not that of the others, in a sentence."""
        if len(set(self.digests.values())) <= 1:
            return []
        shown = ", ".join(f"{name} {digest}" for name, digest in self.digests.items())
        return [f"the replicated states differ: {shown}"]

    def problems(self) -> list[str]:
        """What is wrong, in sentences."""
        stuck = [f"it got stuck: {self.stuck}"] if self.stuck else []
        told = [f"the continuous audit: {alarm}" for alarm in self.alarms[:ALARMS_SHOWN]]
        if more := len(self.alarms) - len(told):
            told.append(f"the continuous audit: {more:,} more, in {self.plan.out / 'alarms'}")
        return [*map(str, self.violations), *told, *self.differences, *self.growth, *stuck]

    def verdict(self) -> str:
        """The result as a line."""
        checked = f"{self.views:,} views and {self.deliveries:,} deliveries were checked"
        checked += f"; {self.faults:,} faults survived, messages lost: {self.lost:,}"
        if self.is_clean:
            checked += f"; {self.writers} members wrote to a state, equal at {len(self.digests)}"
            return f"CLEAN: {checked}; memory and descriptors stayed flat"
        count = len(self.problems())
        return f"BROKEN: {count} problem{'s' if count > 1 else ''}; {checked}"

    def plain(self) -> dict[str, object]:
        """All of it as plain data."""
        return {
            "is_clean": self.is_clean,
            "seed": self.plan.seed,
            "seconds": round(self.seconds, 1),
            "actions": dict(self.actions),
            "faults": self.faults,
            "lost": self.lost,
            "views": self.views,
            "deliveries": self.deliveries,
            "slowest_view": round(self.slowest_view, 2),
            "audit": self.audit,
            "digests": self.digests,
            "writers": self.writers,
            "problems": self.problems(),
            "vitals": self.vitals.plain(),
        }


def soak(plan: SoakPlan, say: Say) -> SoakOutcome:
    """Run it. Raises ConfigError when there is no place for it; all else is an outcome."""
    prepare(plan)
    inspector = Inspector(plan.trace, rules_of(plan.stack()), keep=plan.audit)
    names = [f"steady-{number + 1}" for number in range(plan.steady)]
    outcome = SoakOutcome(plan, Vitals(names))
    began = time.monotonic()
    with ExitStack() as stack:
        cast = Cast(plan, stack, inspector)
        run = _SoakRun(plan, cast, inspector, outcome, say)
        try:
            if plan.audit:
                run.auditor = Auditor(plan)
                stack.callback(run.auditor.end)
            run.play()
        except DemoError as error:
            outcome.stuck = str(error)
    outcome.seconds = time.monotonic() - began
    outcome.views, outcome.deliveries = inspector.views, inspector.deliveries
    return outcome


class _SoakRun:
    """One soak under way."""

    def __init__(
        self, plan: SoakPlan, cast: Cast, inspector: Inspector, outcome: SoakOutcome, say: Say
    ) -> None:
        self._plan, self._cast, self._inspector = plan, cast, inspector
        self._outcome, self._say_line = outcome, say
        self._dice = random.Random(plan.seed)
        self._began = time.monotonic()
        self._next_sample = MINUTE
        self._deck: list[str] = []
        self.auditor: Auditor | None = None

    def play(self) -> None:
        """Form, let things happen, see all off; ends early when a guarantee is broken."""
        plan, cast = self._plan, self._cast
        self._say(
            f"{plan.steady} steady members and up to {plan.guests} guests, each sends {plan.rate:,}"
            f" messages per second; {plan.transport}, {plan.loss:.0%} loss; seed {plan.seed}"
        )
        if self.auditor is not None:
            self.auditor.wait_until_ready()
        cast.settle_in()
        self._began = time.monotonic()
        cast.send()
        self._sample("start")
        while self._elapsed < plan.minutes * 60 and not self._broken:
            self._act()
        cast.calm_down()
        self._outcome.digests, self._outcome.writers = cast.digests(), cast.writers
        cast.see_guests_off()
        self._pass_time(LOOK_SECONDS)
        self._sample("end")
        cast.finish()
        self._look()
        if not self._outcome.violations and self._inspector.left:
            self._outcome.stuck = f"{self._inspector.left} views never came to their end"
        elif not self._inspector.views:
            self._outcome.stuck = "the members have left no traces to check"
        self._finish_audit()
        self._outcome.growth = list(
            self._outcome.vitals.growth(plan.memory_growth, plan.file_growth, warm=1)
        )

    def _finish_audit(self) -> None:
        if self.auditor is not None:
            self._say("all members are gone; the audit judges their last views")
            self.auditor.finish()
            self._outcome.alarms, self._outcome.audit = self.auditor.alarms, self.auditor.verdict
            self._say(f"audit: {self._outcome.audit}")

    @property
    def _broken(self) -> bool:
        """Whether an inspector or the audit has found a guarantee broken."""
        alarmed = self.auditor is not None and bool(self.auditor.alarms)
        return alarmed or bool(self._outcome.violations)

    # What happens ---------------------------------------------------------------------------------

    def _act(self) -> None:
        """One thing happens; then, as a rule, the members are given time to be one group again."""
        action = self._choose()
        self._outcome.actions[action] += 1
        told = self._do(action)
        if action in ACTIONS and action != "pause" and self._dice.random() < HASTY_CHANCE:
            self._say(f"{told}; at once")
            self._look()
            return
        took = self._cast.unite()
        self._outcome.slowest_view = max(self._outcome.slowest_view, took)
        self._say(f"{told}; one view of {len(self._cast.living)} after {took:.1f} s")
        self._pass_time(self._dice.uniform(*BETWEEN_SECONDS))

    def _choose(self) -> str:
        """The next thing that happens: a card of a shuffled deck, so that each has its turn."""
        for action in self._deck:
            if self._is_possible(action):
                self._deck.remove(action)
                return action
        weights = {**ACTIONS, **OUTSIDE, **(NAMESPACE_FAULTS if self._plan.network else {})}
        self._deck = [action for action, weight in weights.items() for _ in range(weight)]
        self._dice.shuffle(self._deck)
        return self._choose()

    def _is_possible(self, action: str) -> bool:
        guests = len(self._cast.guests)
        if action in JOINS:
            return guests < self._plan.guests
        return guests >= LEAST_GUESTS.get(action, 0)

    def _do(self, action: str) -> str:
        """Do it; what was done, in words."""
        cast, dice = self._cast, self._dice
        match action:
            case "join":
                return f"{cast.join()} joins"
            case "kill":
                return f"kills {self._kill()}"
            case "restart":
                guest = dice.choice(cast.guests)
                return f"kills {guest.name}; {cast.restart(guest)} starts at its port"
            case "kill two":
                return f"kills {self._kill()} and {self._kill()}"
            case "leave":
                guest = dice.choice(cast.guests)
                cast.leave(guest)
                return f"{guest.name} leaves"
            case "intruder":
                seconds = dice.uniform(*ATTACK_SECONDS)
                cast.attack(dice.randrange(1 << 30), seconds)
                return f"a hostile process sends for {seconds:.1f} s"
            case "clock jump":
                return self._set_clock(dice.choice(cast.living), dice.uniform(-1.0, 1.0))
            case "full journal":
                return f"{cast.fill_journal()} joins with a full disk, and leaves"
            case "full trace":
                return f"{cast.fill_trace()} joins; the disk of its trace is full"
            case "cut pair" | "cut one way" | "lose packets":
                return self._break_link(action, dice.uniform(*CUT_SECONDS))
            case _:
                return self._pause(dice.choice(cast.living), dice.uniform(*PAUSE_SECONDS))

    def _set_clock(self, member: MemberProcess, share: float) -> str:
        seconds = share * CLOCK_SECONDS
        self._cast.set_clock(member, seconds)
        return f"the clock of {member.name} jumps by {seconds:+.0f} s"

    def _kill(self) -> str:
        guest = self._dice.choice(self._cast.guests)
        self._cast.kill(guest)
        return guest.name

    def _break_link(self, action: str, seconds: float) -> str:
        one, other = self._dice.sample(self._cast.living, 2)
        percent = self._dice.randint(*LOSS_PERCENT)
        if action == "lose packets":
            self._cast.lose(one, percent)
            told = f"{percent} % of the packets to {one.name} are lost"
        else:
            self._cast.cut(one, other, both=action == "cut pair")
            told = f"cuts {one.name} {'and' if action == 'cut pair' else '→'} {other.name}"
        self._pass_time(seconds)
        self._cast.mend()
        return f"{told} for {seconds:.1f} s"

    def _pause(self, member: MemberProcess, seconds: float) -> str:
        self._cast.pause(member)
        self._pass_time(seconds)
        self._cast.resume()
        return f"stops {member.name} for {seconds:.1f} s"

    # Watching -------------------------------------------------------------------------------------

    def _pass_time(self, seconds: float) -> None:
        """Let time pass, and look at the traces meanwhile."""
        until = time.monotonic() + seconds
        while True:
            self._look()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, LOOK_SECONDS))

    def _look(self) -> None:
        if not self._outcome.violations:
            self._outcome.violations = self._inspector.look()
        if self._elapsed >= self._next_sample:
            self._sample(f"minute {int(self._elapsed // MINUTE)}")
            self._next_sample = (self._elapsed // MINUTE + 1) * MINUTE

    def _sample(self, label: str) -> None:
        vitals = self._outcome.vitals
        line = vitals.take(label, self._cast.pids)
        for shown in vitals.table()[:2] if len(vitals.rows) == 1 else ():
            self._say_line(shown)
        self._say_line(line)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _say(self, words: str) -> None:
        minutes, seconds = divmod(int(self._elapsed), 60)
        self._say_line(f"{minutes:02}:{seconds:02}  {words}")
