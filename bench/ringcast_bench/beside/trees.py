"""Another tree of this project: a revision, unpacked while it is measured, or a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from ringcast.errors import ConfigError
from ringcast_bench.beside import foreign_jobs
from ringcast_bench.job import Job, Missing

ROOT = Path(__file__).resolve().parents[3]
"""Of this tree."""
LAYOUTS = {
    "bench/ringcast_bench": "ringcast_bench",
    "src/ringcast/bench": "ringcast.bench",
}
"""Where the benchmarks are in a tree, now and before, with the name of their package."""
COMMAND_SECONDS = 60.0

ForeignJobs = Mapping[str, Mapping[str, list[dict[str, object]]]]
"""By scenario and row."""


class Tree:
    """A tree whose code other processes run; each gets the job that it has in this one."""

    def __init__(self, name: str, root: Path) -> None:
        """Raises ConfigError if there are no benchmarks in it that can be run."""
        self.name = name
        package = next((p for folder, p in LAYOUTS.items() if (root / folder).is_dir()), None)
        if package is None:
            raise ConfigError(f"{name} has no benchmarks: give a revision or tree that has them")
        self.module = f"{package}.child"
        paths = os.pathsep.join(str(root / folder) for folder in ("src", "bench"))
        self.environment = {**os.environ, "PYTHONPATH": paths}
        command = [sys.executable, "-P", foreign_jobs.__file__, package]
        found = json.loads(_output(command, self.environment))
        if not Path(found["file"]).resolve().is_relative_to(root.resolve()):
            raise ConfigError(f"{name} is not imported, but {found['file']}: unset PYTHONPATH")
        self._jobs: ForeignJobs = found["jobs"]

    def lines(self, scenario: str, who: str, jobs: list[Job]) -> list[str]:
        """What to tell the processes of a row; the stack is the other tree's own. Raises
        Missing."""
        theirs = self._jobs.get(scenario, {}).get(who, [])
        if len(theirs) != len(jobs):
            raise Missing(f"{self.name} has no such row")
        return [self._line(job, their) for job, their in zip(jobs, theirs, strict=True)]

    def _line(self, job: Job, theirs: Mapping[str, object]) -> str:
        fields = dict(theirs)
        unset = asdict(Job(contestant=job.contestant))
        for name, value in asdict(job).items():
            if name in theirs and name != "spec":  # Settings may have had other names.
                fields[name] = value
            elif name not in theirs and value != unset[name]:
                raise Missing(f"{self.name} has no jobs with '{name}'")
        return json.dumps(fields)


@contextmanager
def tree_of(what: str, root: Path = ROOT) -> Iterator[Tree]:
    """The tree in a folder, or of a revision, which is unpacked for as long as the context is open.
    Raises ConfigError."""
    if Path(what).is_dir():
        yield Tree(what, Path(what).absolute())
        return
    with TemporaryDirectory(prefix="ringcast-beside-") as place:
        packed, unpacked = Path(place, "tree.tar"), Path(place, "tree")
        revision = f"{what}^{{commit}}"
        where = ["git", "-C", str(root)]
        try:
            commit = _output([*where, "rev-parse", "--verify", "--end-of-options", revision])
            _output([*where, "archive", f"--output={packed}", commit.strip()])
        except ConfigError as error:
            raise ConfigError(
                f"'{what}' is neither a folder nor a revision of {root}: {error}"
            ) from None
        with tarfile.open(packed) as archive:
            archive.extractall(unpacked, filter="data")
        yield Tree(what, unpacked)


def _output(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    """What a command prints. Raises ConfigError when it fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(str(error)) from None
    if done.returncode:
        raise ConfigError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout
