"""Parameters for tests that repeat one check with many seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def quick_first(values: Iterable[object], quick: int) -> list[ParameterSet]:
    """The values as parameters: `make quick` runs the first `quick` of them, `make test` all."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] if number >= quick else [])
        for number, value in enumerate(values)
    ]
