"""How the cost of control grows with the group, in the simulator: `ringcast bench sim --growth`."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast import presets
from ringcast.sim.trial import Trial, run

SIZES = (4, 16, 64, 256)


def growth() -> Iterator[str]:
    """Control frames per delivered message, with the same traffic in larger and larger groups."""
    yield f"{'members':>8} {'frames/delivered':>18} {'join, virtual s':>16} {'real s':>8}"
    for members in SIZES:
        outcome = run(Trial(spec=presets.lan(), members=members, messages=10_000, senders=4))
        assert outcome.complete, outcome
        yield (
            f"{members:>8} {outcome.control_per_delivered:>18.4f} {outcome.join_seconds:>16.2f}"
            f" {outcome.real_seconds:>8.2f}"
        )
