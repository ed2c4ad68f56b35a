"""What members say about themselves to processes of the same user on the same machine.

A member listens on a socket in a private directory; a client that connects gets its state as
one JSON object and the end of the stream. Nothing is read from the client.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ringcast.errors import ConfigError
from ringcast.runtime.ops.run_directory import run_directory
from ringcast.runtime.system.accepting import accept

if TYPE_CHECKING:
    from ringcast.runtime.api.base import GroupBase

SEND_TIMEOUT = 1.0
"""Seconds that a client has to read its answer; others wait meanwhile."""
ASK_TIMEOUT = 2.0
"""Seconds that a member has to answer: one that is stopped does not."""
ANSWER_MAX = 16_000_000
"""The largest answer that is read, in bytes."""
BACKLOG = 8

Status = dict[str, object]

log = logging.getLogger("ringcast.status")


def serve_status(group: GroupBase) -> StatusServer:
    """Let this user ask a member for its state, until `close`. Raises ConfigError.

    `join(…, status=True)` does it for as long as the member lives.
    """
    return StatusServer(str(group.me), group.stats)


class StatusServer:
    """Answers those who ask for a member's state, in a thread of its own; also `with` closes it."""

    def __init__(self, label: str, stats: Callable[[], Mapping[str, object]]) -> None:
        self._stats = stats
        self._path = run_directory(create=True) / f"{os.getpid()}-{label}.sock"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # A client removes a socket without a listener, so this one gets its name later.
            unnamed = self._path.with_suffix(".new")
            self._listener.bind(str(unnamed))
            self._listener.listen(BACKLOG)
            unnamed.rename(self._path)
        except OSError as error:
            self._listener.close()
            raise ConfigError(
                f"cannot serve the status at {self._path} ({error.strerror}):"
                " set XDG_RUNTIME_DIR to a directory with a short name"
            ) from None
        name = f"ringcast-status-{label}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more; may be called twice."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # Wakes the thread.
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        with self._listener:
            while (caller := accept(self._listener)) is not None:
                with caller:
                    self._answer(caller)

    def _answer(self, caller: socket.socket) -> None:
        caller.settimeout(SEND_TIMEOUT)
        try:
            caller.sendall(json.dumps(with_process(self._stats())).encode())
        except OSError as error:
            log.debug("a client asked for the status and did not read it: %s", error)


def status_of(group: GroupBase) -> Status:
    """What `stats()` says, with the process."""
    return with_process(group.stats())


def with_process(stats: Mapping[str, object]) -> Status:
    """What a member says, with the process that it lives in."""
    return {**stats, "pid": os.getpid()}


# Asking -------------------------------------------------------------------------------------------


def running_members(group: str | None = None) -> list[Status]:
    """The state of each member of this user on this machine, of one group or of all.

    One that does not answer in time is named with an `error`. Raises ConfigError.
    """
    found = [status for path in _sockets() if (status := _ask(path)) is not None]
    wanted = [s for s in found if group is None or s.get("group", group) == group]
    return sorted(wanted, key=lambda s: (str(s.get("group", "")), str(s.get("name", ""))))


def _sockets() -> Iterator[Path]:
    directory = run_directory()
    if directory.is_dir():
        yield from sorted(directory.glob("*.sock"))


def _ask(path: Path) -> Status | None:
    """The answer at a socket; None when no member listens there any more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ASK_TIMEOUT)
        try:
            sock.connect(str(path))
            return _parse(_read(sock))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)  # Its process has died without a word.
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            pid = path.name.partition("-")[0]
            return {"pid": int(pid) if pid.isdecimal() else 0, "error": f"no answer: {error}"}
    return None


def _read(sock: socket.socket) -> bytes:
    answer, until = bytearray(), time.monotonic() + ASK_TIMEOUT
    while chunk := sock.recv(65_536):
        answer += chunk
        if len(answer) > ANSWER_MAX or time.monotonic() > until:
            raise ValueError("the answer has no end")
    return bytes(answer)


def _parse(answer: bytes) -> Status | None:
    if not answer:
        return None  # It has ended while it was asked.
    status = json.loads(answer)
    if not isinstance(status, dict):
        raise ValueError("the answer is not the state of a member")
    return status
