"""Programs that use the public names pass strict type checkers, as do the examples."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["tests/typed/program.py", *sorted(str(p) for p in (ROOT / "examples").glob("*.py"))]


@pytest.mark.slow
def test_users_programs_pass_mypy(tmp_path: Path) -> None:
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


def pyright(folder: Path, *programs: Path) -> subprocess.CompletedProcess[str]:
    """What pyright prints about programs, with a configuration that is written to a folder."""
    settings = {
        "typeCheckingMode": "strict",
        "include": [str(program) for program in programs],
        "extraPaths": [str(ROOT / "src"), str(ROOT / "examples" / "my_protocol")],
        "pythonVersion": "3.11",
    }
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    return subprocess.run(
        [sys.executable, "-m", "basedpyright", "-p", str(config), "--pythonpath", sys.executable],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_users_programs_pass_pyright(tmp_path: Path) -> None:
    done = pyright(tmp_path, ROOT / "tests" / "typed", ROOT / "examples")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_pyright_finds_a_wrong_use_of_a_public_name(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(
        "from ringcast import Message\n\n\ndef text(message: Message) -> str:\n"
        "    return message.payload\n"
    )
    done = pyright(tmp_path, program)
    assert done.returncode == 1
    assert '"bytes" is not assignable to "str"' in done.stdout
