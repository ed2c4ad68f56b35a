"""Fuzzes all targets for some seconds: `python -m tests.fuzz SECONDS [TARGET …]`.

What breaks a target is kept in build/fuzz, and becomes a test when it is mended. Inputs that reach
new code are kept there as well, for the next run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
FOUND = Path("build/fuzz")
EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")
COVERED = re.compile(r"cov: (\d+)")
INPUT_BYTES_MAX = 4_096
MEMORY_MB_MAX = 2_000
SECONDS_MAX = 10
"""What one input may take before it counts as a hang."""
LINES_SHOWN = 40


def fuzz(target: str, seconds: int) -> tuple[int, int, list[Path]]:
    """Inputs tried, places of the code reached, and the inputs that broke the target."""
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    before = set(FOUND.glob(f"{target}-*"))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.one", target),
            *(str(found), str(CORPUS / target)),
            f"-max_total_time={seconds}",
            f"-max_len={INPUT_BYTES_MAX}",
            f"-rss_limit_mb={MEMORY_MB_MAX}",
            f"-timeout={SECONDS_MAX}",
            f"-artifact_prefix={FOUND}/{target}-",
            "-print_final_stats=1",
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = run.stdout + run.stderr
    executed, covered = EXECUTED.findall(said), COVERED.findall(said)
    broken = sorted(set(FOUND.glob(f"{target}-*")) - before)
    if run.returncode:
        print(*said.splitlines()[-LINES_SHOWN:], sep="\n")
        broken = broken or [Path(f"{target} ended with status {run.returncode}")]
    return int(executed[-1]) if executed else 0, int(covered[-1]) if covered else 0, broken


def main() -> int:
    """Share the time among the targets; 1 when an input broke one."""
    names = sys.argv[2:] or list(TARGETS)
    seconds = max(1, int(sys.argv[1]) // len(names))
    tried, crashes = 0, list[Path]()
    for name in names:
        executed, covered, broken = fuzz(name, seconds)
        tried += executed
        crashes += broken
        print(
            f"{name:<12} {executed:>9,} inputs  {covered:>6,} places reached  {len(broken)} crashes"
        )
    for path in crashes:
        print(f"  {path}")
    print(f"inputs tried: {tried:,}, crashes: {len(crashes)}")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
