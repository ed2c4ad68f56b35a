"""Keys of real processes are replaced while messages flow: by SIGHUP, and by `reload_keys`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from ringcast import sync
from ringcast.closed.keys import generate
from ringcast.errors import RingcastError
from ringcast.journal import Journal
from tests.runtime.command import Command, commands, node
from tests.runtime.support import SOON, group_name, running, tcp
from tests.runtime.waiting import wait_until

pytestmark = pytest.mark.net

LOG = ("--log", "text")


class Load:
    """Sends numbered messages without a pause until it is enough."""

    def __init__(self, group: sync.Group) -> None:
        self._group = group
        self._enough = threading.Event()
        self.sent = 0

    def run(self) -> None:
        while not self._enough.is_set():
            numbers = range(self.sent, self.sent + 20)
            self._group.send_many([b"%d " % n + bytes(2_000) for n in numbers], timeout=SOON)
            self.sent += 20

    def stop(self) -> None:
        self._enough.set()


def test_a_node_and_a_recorder_replace_their_keys_under_load(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    generate(old)
    generate(new)
    files = {name: tmp_path / f"{name}.key" for name in ("a", "node", "recorder")}
    phases = [[old, new], [new, old], [new]]

    def write(*names: str, keys: list[Path]) -> None:
        for name in names:
            files[name].write_text("".join(key.read_text() for key in keys))
            files[name].chmod(0o600)

    write(*files, keys=[old])
    name, journal = group_name(), tmp_path / "journal"
    with (
        commands() as started,
        sync.join(name, tcp(None), receive=False, key_file=files["a"]) as a,
    ):
        seeds = ("--seeds", a.endpoint, *LOG, "--key-file")
        listener = node(started, tmp_path, name, "n", *seeds, str(files["node"]))
        words = ("record", name, "--to", str(journal), *seeds, str(files["recorder"]))
        recorder = Command(tmp_path, *words)
        started.append(recorder)
        wait_until(lambda: len(a.view) == 3)
        listener.err.hear("joined ")
        recorder.err.hear("Recording ")
        load = Load(a)
        with running(load.run):
            try:
                for keys in phases:
                    for who, command in (("node", listener), ("recorder", recorder)):
                        write(who, keys=keys)
                        command.signal(signal.SIGHUP)
                        assert "keys" in command.err.hear("read anew")
                    write("a", keys=keys)
                    a.reload_keys()
                    with sync.join(name, tcp(a.endpoint), receive=False, key_file=files["a"]):
                        wait_until(lambda: len(a.view) == 4)
                    wait_until(lambda: len(a.view) == 3)
            finally:
                load.stop()
        assert len(a.stats()["key_ids"]) == 1
        late = tcp(a.endpoint).replace("Discovery", when_alone="wait")
        with pytest.raises(RingcastError):
            sync.join(name, late, timeout=1.0, key_file=old).close()
        assert len(a.view) == 3
        assert a.stats()["counters"].get("declared_dead", 0) == 0
        recorder.signal(signal.SIGTERM)
        assert recorder.status() == 0
    rows = [row for batch in Journal(journal).read() for row in batch.to_pylist()]
    numbers = sorted(int(row["payload"].split(b" ")[0]) for row in rows)
    assert numbers == list(range(load.sent))
