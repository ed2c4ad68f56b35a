"""The wheel holds the package, its marker for type checkers, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from setup import package_page
from tools.try_dist import ROOT, relative_links, unwanted


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    """Built from a copy by the backend itself, so that the working copy stays as it is."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
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
    assert relative_links(wheel) == []
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/METADATA"))
        metadata = archive.read(name)
    assert b"Description-Content-Type: text/markdown" in metadata
    assert b"sync.join(" in metadata


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "https://host/files/",
            "see [the docs](https://host/files/docs/a.md#b), [x](#y): ![p](https://host/files/p.png)",
        ),
        (None, "see the docs, [x](#y): p"),
    ],
)
def test_links_of_the_package_page_are_absolute_or_text(source: str | None, expected: str) -> None:
    page = package_page("see [the docs](docs/a.md#b), [x](#y): ![p](p.png)", source)
    assert page == expected


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
