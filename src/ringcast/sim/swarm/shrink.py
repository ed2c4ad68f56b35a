"""Shrinks a failing plan of the swarm: fewer actions, members, settings and faults of the network.

Delta debugging (Zeller's ddmin): leave out halves, then quarters and so on down to single actions,
and keep whatever still fails in the same way. Then simplify what is left: settings and links go
back to their defaults, protocols that a stack can do without go, runs of messages become short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ringcast.errors import ConfigError
from ringcast.sim.swarm.plan import Change, Plan
from ringcast.sim.swarm.run import record_seed, replay
from ringcast.spec import StackSpec

TRIES_MAX = 600
"""Replays, at the most: a plan that is small by then is small enough."""
WORDS = 4
"""Problems whose first words are the same are the same problem."""

Progress = Callable[[int, int], None]
"""Called after each replay with the replays so far and the actions that are left."""


@dataclass(frozen=True)
class Shrunk:
    """A plan that is as small as the shrinking could make it."""

    plan: Plan
    problem: str
    """How it fails."""
    before: int
    """Actions of the plan that it was made from."""
    tries: int


def shrink_seed(
    seed: int,
    progress: Progress | None = None,
    tries_max: int = TRIES_MAX,
    change: Change | None = None,
) -> Shrunk | None:
    """Run a seed and shrink its plan; None when it does not fail. Raises ConfigError."""
    plan, verdict = record_seed(seed, change=change)
    if not verdict.problems:
        return None
    return shrink(plan, verdict.problems[0], progress, tries_max)


def shrink(
    plan: Plan, problem: str, progress: Progress | None = None, tries_max: int = TRIES_MAX
) -> Shrunk:
    """Shrink a plan that fails with this problem."""
    shrinker = _Shrinker(plan, problem, progress, tries_max)
    before = -1
    while shrinker.weight != before and shrinker.tries < tries_max:
        before = shrinker.weight
        shrinker.fewer_actions()
        shrinker.simpler()
    return Shrunk(shrinker.plan, shrinker.problem, len(plan.actions), shrinker.tries)


def kind_of(problem: str) -> tuple[str, ...]:
    """The kind of a problem: its first words, without time, members and numbers."""
    text = re.sub(r"^[\d.]+ \S+: ", "", problem)
    return tuple(re.findall(r"(?<![\w.])[A-Za-z]{2,}(?![\w.])", text)[:WORDS])


class _Shrinker:
    def __init__(self, plan: Plan, problem: str, progress: Progress | None, tries_max: int) -> None:
        self.plan = plan
        self.problem = problem
        self.tries = 0
        self._kind = kind_of(problem)
        self._progress = progress
        self._tries_max = tries_max

    @property
    def weight(self) -> int:
        """How large the plan is."""
        return len(self.plan.to_json())

    def fewer_actions(self) -> None:
        """Leave out actions, large parts of the list first."""
        parts = 2
        while self.plan.actions:
            actions = self.plan.actions
            size = -(-len(actions) // parts)
            for start in range(0, len(actions), size):
                if self._with(actions=actions[:start] + actions[start + size :]):
                    parts = max(2, parts - 1)
                    break
            else:
                if size == 1 or self.tries >= self._tries_max:
                    return
                parts *= 2

    def simpler(self) -> None:
        """Make members, messages, network and stack simpler, one after the other."""
        for name in {action.split()[1] for action in self.plan.actions if " " in action}:
            self._with(actions=tuple(a for a in self.plan.actions if name not in a.split()[1:]))
        self._with(recovery=(1,) * len(self.plan.recovery))
        self._with(size=1)
        self._with(addresses="small")
        self._with(states=False)
        for name in list(self.plan.link):
            self._with(link={n: v for n, v in self.plan.link.items() if n != name})
        for name in list(self.plan.switch):
            self._with(switch={n: v for n, v in self.plan.switch.items() if n != name})
        for number in range(len(self.plan.actions)):
            for shorter in _shorter(self.plan.actions[number : number + 1]):
                actions = list(self.plan.actions)
                actions[number] = shorter
                if self._with(actions=tuple(actions)):
                    break
        for role in [protocol.role for protocol in self.plan.spec]:
            self._simpler_protocol(role)

    def _simpler_protocol(self, role: str) -> None:
        """Leave a protocol out, or set all its settings, or single ones, to their defaults."""
        if self._with_spec(lambda spec: spec.without(role)):
            return
        defaults = type(self.plan.spec[role])().values()
        if self._with_spec(lambda spec: spec.replace(role, **defaults)):
            return
        for name, default in defaults.items():
            change = {name: default}
            self._with_spec(lambda spec, change=change: spec.replace(role, **change))  # type: ignore[misc]

    def _with_spec(self, change: Callable[[StackSpec], StackSpec]) -> bool:
        try:
            spec = change(self.plan.spec)
        except ConfigError:
            return False
        return self._with(spec=spec)

    def _with(
        self,
        *,
        spec: StackSpec | None = None,
        actions: Sequence[str] | None = None,
        link: Mapping[str, object] | None = None,
        **simple: object,
    ) -> bool:
        """Keep this change if the plan still fails in the same way."""
        changes: dict[str, object] = dict(simple)
        changes |= {} if spec is None else {"spec": spec}
        changes |= {} if actions is None else {"actions": tuple(actions)}
        changes |= {} if link is None else {"link": link}
        plan: Plan = replace(self.plan, **changes)  # type: ignore[arg-type]
        if plan == self.plan or self.tries >= self._tries_max:
            return False
        self.tries += 1
        played, verdict = replay(plan)
        same = [problem for problem in verdict.problems if kind_of(problem) == self._kind]
        if same:
            self.plan, self.problem = played, same[0]
        if self._progress is not None:
            self._progress(self.tries, len(self.plan.actions))
        return bool(same)


def _shorter(actions: Sequence[str]) -> Iterator[str]:
    """Simpler forms of an action, the simplest first."""
    for action in actions:
        verb, *words = action.split()
        if verb == "send" and words[1] != "1":
            yield " ".join([verb, words[0], "1", *words[2:]])
            yield " ".join([verb, words[0], str(max(1, int(words[1]) // 10)), *words[2:]])
        elif verb == "run" and float(words[0]) > 0.02:
            yield "run 0.02"
            yield f"run {float(words[0]) / 2}"
