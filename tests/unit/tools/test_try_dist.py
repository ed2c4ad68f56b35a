"""The wheel holds the package, its marker for type checkers, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.try_dist import ROOT, unwanted


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    """Built from a copy by the backend itself, so that the working copy stays as it is."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    litter = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=litter)
    script = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheel = next((tmp_path / "dist").glob("*.whl"))
    assert unwanted(wheel) == []


def test_a_wheel_with_tests_or_without_its_marker_is_noticed(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("ringcast/__init__.py", "ringcast/cli/main.py", "ringcast_bench/run.py"):
            archive.writestr(name, "")
        archive.writestr("ringcast/tests/test_a.py", "")
    assert unwanted(wheel) == [
        "ringcast_bench/run.py",
        "ringcast/tests/test_a.py",
        "ringcast/py.typed is missing",
    ]
