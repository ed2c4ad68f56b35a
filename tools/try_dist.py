"""Builds the wheel and the sdist, checks them, and tries the wheel in fresh environments.

python -m tools.try_dist [PYTHON ...]      without a name: every Python from 3.11 on that is found
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "dist"
NEWEST = 16
"""The last minor version of Python that is looked for."""

TRIALS = (
    ("ringcast", "--version"),
    ("python", "-m", "ringcast", "sim", "--members", "3", "--messages", "200", "--loss", "0.1"),
    ("python", "-W", "error", "-c", "import ringcast, ringcast.sync, ringcast.sim"),
)
"""What has to work in an environment that has nothing but the wheel."""


def build() -> list[Path]:
    """Build the sdist, and the wheel from it, with the pinned backend."""
    shutil.rmtree(OUT, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(OUT), str(ROOT))
    return sorted(OUT.iterdir())


def unwanted(wheel: Path) -> list[str]:
    """Files that a wheel must not have, and those that it must have and has not."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    strange = [n for n in names if not n.startswith(("ringcast/", "ringcast-"))]
    tests = [n for n in names if "/tests/" in n or Path(n).name.startswith("test_")]
    needed = {"ringcast/py.typed", "ringcast/__init__.py", "ringcast/cli/main.py"}
    return [*strange, *tests, *(f"{n} is missing" for n in sorted(needed - set(names)))]


def relative_links(wheel: Path) -> list[str]:
    """Links of the package page that lead nowhere outside the repository."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        page = archive.read(name).decode()
    return re.findall(r"\]\((?!\w+:|#)([^)\s]+)\)", page)


def pythons() -> Iterator[Path]:
    """The interpreters from 3.11 on that are installed here, one per minor version."""
    for minor in range(11, NEWEST + 1):
        places = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"), reverse=True)
        if found := shutil.which(f"python3.{minor}"):
            places.append(Path(found))
        for place in places:
            asked = subprocess.run([place, "-c", "import venv"], capture_output=True, check=False)
            if asked.returncode == 0:
                yield place
                break


def try_wheel(python: Path, wheel: Path) -> None:
    """Install the wheel alone in a fresh environment, and run it there."""
    with tempfile.TemporaryDirectory() as folder:
        _run(str(python), "-m", "venv", folder)
        binaries = Path(folder) / "bin"
        install = ("-m", "pip", "install", "-qq", "--no-index", "--no-deps", str(wheel))
        _run(str(binaries / "python"), *install)
        for program, *arguments in TRIALS:
            done = _run(str(binaries / program), *arguments, cwd=folder)
            line = next(iter(done.splitlines()), "no output, as it should be")
            print(f"  {program} {' '.join(arguments)}: {line}")


def _run(*command: str, cwd: str | None = None) -> str:
    """Run a command to its good end; returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> None:
    """Build, check, try."""
    files = build()
    print(*(f"built {file.relative_to(ROOT)}" for file in files), sep="\n")
    print(_run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files)).strip())
    wheel = next(file for file in files if file.suffix == ".whl")
    if found := unwanted(wheel) + relative_links(wheel):
        sys.exit("the wheel is not right: " + ", ".join(found))
    for python in map(Path, arguments) if arguments else pythons():
        print(_run(str(python), "--version").strip(), f"({python})")
        try_wheel(python, wheel)


if __name__ == "__main__":
    main(sys.argv[1:])
