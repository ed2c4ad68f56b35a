"""Run by path inside another tree: writes where its package is, and the jobs of its scenarios.

It imports nothing of the tree that it comes from: `python -P foreign_jobs.py PACKAGE`.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module


def main(package: str) -> None:
    """Write one JSON object."""
    run, scenarios = import_module(f"{package}.run"), import_module(f"{package}.scenarios")
    jobs = {
        scenario.name: {
            row.who: [json.loads(job.to_json()) for job in run.jobs_of(scenario, row, False)]
            for row in scenario.rows
            if row.kind == "ringcast"
        }
        for scenario in scenarios.SCENARIOS
    }
    sys.stdout.write(json.dumps({"file": import_module("ringcast").__file__, "jobs": jobs}))


if __name__ == "__main__":
    main(sys.argv[1])
