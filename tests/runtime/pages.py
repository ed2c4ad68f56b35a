"""Runs the programs and commands of pages in the documentation."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.runtime.support import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
LONG = 280
"""Seconds that a command may take on a busy machine."""


def run(arguments: list[str], folder: Path, text: str = "") -> str:
    """Run to a good end; returns what was printed."""
    done = subprocess.run(
        arguments,
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that runs until the test is done with it."""
    with subprocess.Popen(
        arguments,
        cwd=folder,
        text=True,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], *lines: str) -> None:
    """Read until these lines have come, in any order."""
    assert process.stdout is not None
    missing = list(lines)
    while missing:
        line = process.stdout.readline()
        assert line, f"it ended without {missing}"
        if line.rstrip("\n") in missing:
            missing.remove(line.rstrip("\n"))
