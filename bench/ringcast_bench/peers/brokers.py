"""Servers that some peers need: started for one run, in the same network, and ended by their id."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ringcast_bench.job import BenchFailure, Missing

START_WAIT = 10.0
NATS_SETTINGS = """
host: "127.0.0.1"
port: -1
ports_file_dir: "{place}"
max_payload: 64MB
max_pending: 1GB
write_deadline: "60s"
"""


class Broker:
    """The server of a contestant, for as long as the context is open; nothing for most of them."""

    def __init__(self, contestant: str, enter: Sequence[str]) -> None:
        self._contestant, self._enter = contestant, enter
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Raises Missing when there is no such server here."""
        self._place = Path(tempfile.mkdtemp(prefix="ringcast-bench-"))
        try:
            if self._contestant == "nats":
                self._start_nats()
            elif self._contestant == "redis":
                self._start_redis()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def _start(self, *words: str) -> None:
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [*self._enter, *words], stdin=quiet, stdout=quiet, stderr=quiet
        )

    def _start_nats(self) -> None:
        settings = self._place / "nats.conf"
        settings.write_text(NATS_SETTINGS.format(place=self._place))
        self._start(_program("nats-server"), "-c", str(settings))
        until = time.monotonic() + START_WAIT
        while not (files := list(self._place.glob("*.ports"))):
            self._wait_a_little(until)
        ports: dict[str, list[str]] = json.loads(files[0].read_text())
        self.url = ports["nats"][0]

    def _start_redis(self) -> None:
        path = self._place / "redis.sock"
        self._start(
            _program("redis-server"),
            *("--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"),
            *("--client-output-buffer-limit", "pubsub", "0", "0", "0"),
        )
        until = time.monotonic() + START_WAIT
        while not _answers(path):
            self._wait_a_little(until)
        self.url = f"unix://{path}"

    def _wait_a_little(self, until: float) -> None:
        assert self._process is not None
        if self._process.poll() is not None or time.monotonic() >= until:
            raise BenchFailure(f"the {self._contestant} server does not start")
        time.sleep(0.01)


def _program(name: str) -> str:
    """A server beside this Python, or anywhere on the path. Raises Missing."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise Missing(f"no {name} here")
    return found


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.connect(str(path))
        except OSError:
            return False
    return True
