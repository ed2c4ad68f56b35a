"""The timers of each role, from their register."""

from __future__ import annotations

from ringcast.core.stack.timer_register import all_declared_timers
from tools.reference.text import NOTE, cell, table

HEAD = f"""\
# Timers

{NOTE}A part sets timers by name, and the driver needs the next deadline of all of them only. All
lengths are in seconds. A name `#` stands for a number.
"""


def page() -> str:
    """docs/reference/timers.md."""
    rows = [(t.role, f"`{t.name}`", cell(t.length), cell(t.about)) for t in all_declared_timers()]
    lines = [HEAD, *table(("role", "timer", "how long", "when it is due"), rows)]
    return "\n".join(lines).rstrip() + "\n"
