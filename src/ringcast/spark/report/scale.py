"""From numbers to places on paper: linear and logarithmic scales, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A range of values, laid out between two places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value goes; outside the range, to its border."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / (math.log(self.high / self.low) or 1)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """About this many round values within the range."""
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high, count)


def from_zero(values: list[float], start: float, end: float) -> Scale:
    """A linear scale from zero to a round number above all values."""
    top = max(values, default=0) or 1
    step = _step(top / 4)
    return Scale(0, math.ceil(top / step) * step, start, end)


def logarithmic(values: list[float], start: float, end: float) -> Scale:
    """A logarithmic scale over whole powers of ten, around all values that are above zero."""
    positive = [value for value in values if value > 0] or [1]
    low = 10 ** math.floor(math.log10(min(positive)))
    high = 10 ** math.ceil(math.log10(max(positive)))
    return Scale(low, max(high, low * 10), start, end, log=True)


def _ticks(low: float, high: float, count: int) -> list[float]:
    step = _step((high - low) / count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    return [10.0**power for power in range(first, last + 1)]


def _step(rough: float) -> float:
    """The round number (1, 2 or 5 times a power of ten) at or above this."""
    if rough <= 0:
        return 1
    power = math.pow(10, math.floor(math.log10(rough)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


Format = Callable[[float], str]


ALMOST = 0.9995
"""What comes this near to the next unit is rounded to it: 999.9 is 1 k and not 1e+03."""


def number(value: float) -> str:
    """A number for people: 1.2 M, 35 k, 7, 0.25."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size * ALMOST:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def microseconds(value: float) -> str:
    """A time, given in microseconds, in the unit that suits it."""
    for size, unit in ((1e6, " s"), (1e3, " ms")):
        if abs(value) >= size * ALMOST:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g} µs"


def seconds(value: float) -> str:
    """A time, given in seconds, in the unit that suits it."""
    return "0" if value == 0 else microseconds(value * 1e6)


def nbytes(value: float) -> str:
    """A size in bytes, in the unit that suits it."""
    return f"{number(value)}B" if abs(value) >= 1e3 * ALMOST else f"{value:.3g} B"
