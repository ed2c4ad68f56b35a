"""One process of a benchmark: `python -m ringcast_bench.child`, told what to do by JSON lines.

    in   the job             out  {"opened": how others reach it}, or {"missing": why not}
    in   {"others": […]}     out  {"ready": {}}
    in   {"go": true}        out  {"played": figures}, or {"failed": why it does not count}
    in   {"stop": true}      out  {"used": CPU seconds since go, peak memory}; then it ends

At the end of its input it ends at once: the process that leads the run is gone.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import resource
import sys
import threading
from importlib import import_module
from typing import cast

from ringcast.errors import RingcastError
from ringcast_bench.job import BenchFailure, Contestant, Counted, Job, Missing, Report
from ringcast_bench.net.timed import Timed

CONTESTANTS = {
    "ringcast": "ringcast_bench.member",
    "raw-multicast": "ringcast_bench.raw.multicast",
    "raw-tcp": "ringcast_bench.raw.tcp",
    "raw-offload": "ringcast_bench.net.raw",
    "raw-datagrams": "ringcast_bench.net.raw",
    "raw-fragments": "ringcast_bench.net.raw",
    "raw-everybody": "ringcast_bench.raw.everybody",
    "raw-large": "ringcast_bench.raw.large",
    "raw-ping": "ringcast_bench.raw.ping",
    "pyzmq": "ringcast_bench.peers.zmq",
    "nats": "ringcast_bench.peers.nats",
    "redis": "ringcast_bench.peers.redis",
    "zenoh": "ringcast_bench.peers.zenoh",
}
"""Everything that can be measured, with its module, which has `make(job)`."""


def main() -> None:
    """Do one job."""
    logging.basicConfig(level=logging.ERROR)
    lines = _Lines()
    job = Job.from_json(lines.next())
    try:
        module = import_module(CONTESTANTS[job.contestant])
        contestant = cast(Contestant, module.make(job))
        if job.seconds:
            contestant = Timed(job, cast(Counted, contestant))
        first = json.loads(lines.next())
        report(opened=contestant.open(first))
        contestant.meet(json.loads(lines.next())["others"])
        report(ready={})
        lines.next()
        before = _used()
        report(played=contestant.play())
        lines.next()
        contestant.close()  # What is written at the end, a trace say, counts as well.
        report(used=_difference(before, _used()))
    except (ImportError, Missing) as error:
        report(missing=str(error))
    except (BenchFailure, RingcastError, OSError) as error:
        report(failed=f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    os._exit(0)  # Threads of others' libraries may still wait for something.


class _Lines:
    """Lines of standard input; its end ends the process, whatever it is doing."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="commands", daemon=True).start()

    def next(self) -> str:
        """The next line."""
        return self._lines.get()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        os._exit(1)


def report(**what: object) -> None:
    """Write one report for the process that leads the run."""
    try:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)


def _used() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": used.ru_utime + used.ru_stime, "rss": 1024.0 * used.ru_maxrss}


def _difference(before: dict[str, float], after: dict[str, float]) -> Report:
    """CPU seconds in between, and peak memory: in all, and above what there was before."""
    return {
        "cpu": after["cpu"] - before["cpu"],
        "rss": after["rss"],
        "grown": after["rss"] - before["rss"],
    }


if __name__ == "__main__":
    main()
