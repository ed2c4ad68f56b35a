"""What people call the members of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ringcast.trace.schema import Row, unsigned


def member_names(installs: Sequence[Row]) -> dict[int, str]:
    """The members by name; those that share one get their address behind it."""
    names: dict[int, str] = {}
    for row in installs:
        names.setdefault(row.member, f"{unsigned(row.member):x}")
        names.update(zip(row.members or (), row.names or (), strict=False))
    uses = defaultdict[str, int](int)
    for name in names.values():
        uses[name] += 1
    return {m: n if n and uses[n] == 1 else f"{n}-{unsigned(m):x}"[:24] for m, n in names.items()}
