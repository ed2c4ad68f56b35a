"""What a delivered message costs in the simulator, every guarantee checked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ringcast import presets
from ringcast.sim.trial import Trial, run
from ringcast_bench.micro.timing import Case, Work


def cases(messages: int) -> Iterator[Case]:
    """Four members in runs and one by one, without and with loss."""
    for batch, loss, share in ((64, 0.0, 4), (1, 0.0, 40), (64, 0.05, 8)):
        words = f"runs of {batch}" if batch > 1 else "one by one"
        trial = Trial(
            spec=presets.lan(),
            members=4,
            messages=max(256, messages // share),
            size=100,
            batch=batch,
            loss=loss,
        )
        yield Case(f"simulator: {words}, {loss:.0%} lost", partial(_prepare, trial))


def _prepare(trial: Trial) -> Work:
    def work() -> int:
        outcome = run(trial)
        assert outcome.complete, outcome
        return outcome.delivered

    return work
