"""A small disk: the process that runs on it finds it full, and nobody else sees it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ringcast.soak.disk import on_small_disk

ROOT = ("unshare", "-r", "-m", "true")


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="no mount namespace can be made here")
def test_a_process_finds_its_small_disk_full_and_leaves_nothing(tmp_path: Path) -> None:
    write = ("dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=1k", "count=64")
    command = ("unshare", "-r", *on_small_disk(tmp_path, 16 << 10), *write)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert list(tmp_path.iterdir()) == []
