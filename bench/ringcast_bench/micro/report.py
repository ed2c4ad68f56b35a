"""Results of micro-benchmarks: as JSON to keep, and beside those that were kept."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from ringcast.errors import ConfigError
from ringcast_bench.micro import codec, ladder, simulator, windows
from ringcast_bench.micro.timing import ROUNDS, Case, calibrate, time_all

MESSAGES, MESSAGES_QUICK = 65_536, 2_048


@dataclass(frozen=True, kw_only=True)
class Results:
    """Nanoseconds a message by case, and what a turn of a plain loop takes on that machine."""

    calibration: float
    cases: dict[str, float]
    python: str = platform.python_version()
    unit: str = "nanoseconds a message"

    def to_json(self) -> str:
        """To keep."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def load(cls, path: str) -> Results:
        """What was kept. Raises ConfigError."""
        try:
            return cls(**json.loads(Path(path).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"{path} has no results of micro-benchmarks: {error}") from None


def run_all(quick: bool, say: Callable[[str], None]) -> Results:
    """Time every case."""
    rounds = 1 if quick else ROUNDS
    calibration = calibrate(rounds)
    results: dict[str, float] = {}
    for name, cost in time_all(all_cases(MESSAGES_QUICK if quick else MESSAGES), rounds):
        say(f"{name}: {cost:,.1f} ns")
        results[name] = cost
    return Results(calibration=calibration, cases=results)


def all_cases(messages: int) -> Iterator[Case]:
    """Window, codec, ladder, simulator."""
    modules = (windows, codec, ladder, simulator)
    return chain.from_iterable(module.cases(messages) for module in modules)


def ratios(now: Results, before: Results) -> dict[str, float]:
    """What each case costs as a multiple of what it cost before, each in plain Python's turns.

    Above 1 it has become slower; cases that only one of the two has are left out.
    """
    scale = before.calibration / now.calibration
    return {
        name: round(scale * cost / before.cases[name], 3)
        for name, cost in now.cases.items()
        if before.cases.get(name)
    }


def table(now: Results, compared: dict[str, float]) -> str:
    """One line per case."""
    width = max(map(len, now.cases))
    lines = [f"{'':{width}}  ns a message" + ("  × baseline" if compared else "")]
    for name, cost in now.cases.items():
        ratio = f"{compared[name]:>12.2f}" if name in compared else ""
        lines.append(f"{name:{width}}  {cost:>12,.1f}{ratio}")
    lines.append(f"{'a turn of a plain loop':{width}}  {now.calibration:>12,.1f}")
    return "\n".join(lines)
