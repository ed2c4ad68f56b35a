"""A contestant that plays for a fixed time: however slow it is, the run ends."""

from __future__ import annotations

import threading
import time

from ringcast.errors import RingcastError
from ringcast_bench.job import BenchFailure, Counted, Job, Report

SAMPLE_SECONDS = 0.25
"""Time between two looks at the progress."""


class Timed:
    """Lets another contestant play in a thread, and reads its progress meanwhile."""

    def __init__(self, job: Job, inner: Counted) -> None:
        self._job, self._inner = job, inner
        self._ended = threading.Event()
        self._failed: Exception | None = None

    def open(self, first: Report) -> Report:
        return self._inner.open(first)

    def meet(self, others: list[Report]) -> None:
        self._inner.meet(others)

    def play(self) -> Report:
        """The samples of the progress, each with its time."""
        threading.Thread(target=self._play, name="play", daemon=True).start()
        began = time.monotonic()
        until = began + self._job.seconds
        samples = [self._sample()]
        while (left := until - time.monotonic()) > 0:
            if self._ended.wait(min(SAMPLE_SECONDS, left)) and self._failed is not None:
                if not self._job.lenient:
                    done = " ".join(f"{name}={n}" for name, n in self._inner.progress().items())
                    raise BenchFailure(f"{type(self._failed).__name__}: {self._failed} ({done})")
                break
            samples.append(self._sample())
        return {"began": began, "samples": samples}

    def close(self) -> None:
        """Nothing: the process is about to end, and its thread may be blocked for good."""

    def _play(self) -> None:
        try:
            self._inner.play()
        except (BenchFailure, RingcastError, OSError) as error:
            self._failed = error
            self._ended.set()

    def _sample(self) -> Report:
        return {"at": time.monotonic(), **self._inner.progress()}
