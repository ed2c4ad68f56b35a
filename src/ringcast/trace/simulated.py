"""The old place of `ringcast.sim.trace`; importing a name from here warns."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    text = f"ringcast.trace.simulated.{name} has moved: import it from ringcast.sim.trace"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return getattr(import_module("ringcast.sim.trace"), name)
