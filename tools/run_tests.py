"""Runs all tests: the pure ones in parallel, then one by one those with sockets or Spark.

The second run starts even if the first fails. The last line is a closing line like pytest's own
that counts both runs, and the exit status is that of the first run that failed.
"""

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ALONE = sorted(str(path) for path in Path("tests").glob("test_*.py"))
"""Tests of the tree itself."""
PURE = ("tests/unit", "tests/properties", "tests/fuzz", "tests/sim", *ALONE)
REST = ("tests/runtime", "tests/spark")
RUNS = (("-n", "2", "--dist", "worksteal", *PURE), REST)

CLOSING = re.compile(r"^(=+ )?(\d+ [a-z]+(, \d+ [a-z]+)*|no tests ran) in [0-9.]+s")
COUNT = re.compile(r"(\d+) ([a-z]+)")
NO_TESTS_RAN = 5
"""The exit status of pytest when all tests were deselected; that is right for one run of two."""


def counts(line: str) -> Counter[str]:
    """The counts in a closing line of pytest, by their words, always in the plural."""
    found = CLOSING.match(line)
    pairs = COUNT.findall(found[2]) if found else []
    plural = {"error": "errors", "warning": "warnings"}
    return Counter({plural.get(word, word): int(number) for number, word in pairs})


def closing_line(total: Counter[str], seconds: float) -> str:
    """A closing line as pytest writes it, failures first."""
    order = (
        "failed",
        "passed",
        "skipped",
        "deselected",
        "xfailed",
        "xpassed",
        "warnings",
        "errors",
    )
    text = ", ".join(f"{total[word]} {word}" for word in order if total[word])
    return f" {text or 'no tests ran'} in {seconds:.2f}s ".center(80, "=")


def run(arguments: Sequence[str]) -> tuple[int, Counter[str]]:
    """Run pytest and pass its output on; give its exit status and its counts."""
    command = [sys.executable, "-m", "pytest", "--durations=15", *arguments]
    total = Counter[str]()
    pipe, out = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdout=pipe, stderr=out, text=True, errors="replace") as pytest:
        assert pytest.stdout is not None
        for line in pytest.stdout:
            print(line, end="", flush=True)
            total = counts(line) or total
    return pytest.returncode, total


def main(arguments: list[str]) -> int:
    """Run both, each with the further arguments of the command line."""
    before = time.monotonic()
    done = [run([*chosen, *arguments]) for chosen in RUNS]
    total = sum((found for _, found in done), Counter[str]())
    statuses = [status for status, _ in done]
    if any(status and not found for status, found in done if status != NO_TESTS_RAN):
        total["errors"] += 1  # pytest ended without a closing line.
    print(closing_line(total, time.monotonic() - before))
    return next((status for status in statuses if status not in (0, NO_TESTS_RAN)), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
