"""Programs that use the public names pass the strict type checker, as do the examples."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["tests/typed/program.py", *sorted(str(p) for p in (ROOT / "examples").glob("*.py"))]


@pytest.mark.slow
def test_users_programs_pass_the_strict_type_checker(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [*command, f"--cache-dir={tmp_path}", *PROGRAMS],
        cwd=ROOT,
        env={"MYPYPATH": "src", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
