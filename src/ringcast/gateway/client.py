"""A client of the gateway: finds it, or starts it, and hands it messages."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from ringcast.core.model.batch import Payload
from ringcast.errors import Closed, ConfigError, Timeout
from ringcast.gateway.protocol import NUMBER, Disconnected, frame_of, read_reply, read_status
from ringcast.gateway.settings import Settings

SOCKET, LOCK, LOG = ".socket", ".lock", ".log"
START_TIMEOUT = 30.0
"""Seconds that a gateway's process may take until it listens, and beyond its own bounds."""
PAUSE = 0.02
"""Seconds between two looks whether it listens."""

_started: list[subprocess.Popen[bytes]] = []
"""Gateways that this process has started; they outlive it."""


class Client:
    """A connection to the gateway. What is sent goes to the group in that order."""

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        """timeout: seconds after which a gateway that says and takes nothing is given up."""
        self._connection = connection
        self._timeout = timeout

    def send(self, messages: Sequence[Payload]) -> None:
        """Hand messages over; waits while the receivers are slower.

        Raises what went wrong before: Timeout, Closed, TooLarge, LocalError.
        """
        if messages:
            self._push(frame_of(messages))

    def flush(self) -> None:
        """Return when all members have delivered all that was sent. Raises what `send` raises."""
        self._push(NUMBER.pack(0))
        self._hear(read_reply)

    def _push(self, frame: bytes) -> None:
        """Send, and listen: the gateway speaks unasked when it is busy, or something is wrong."""
        connection, rest = self._connection, memoryview(frame)
        while rest:
            speaks, takes, _ = select.select([connection], [connection], [], self._timeout)
            if speaks:
                self._hear(read_status)
            elif not takes:
                raise _silent()
            else:
                # A gateway that goes is heard to go: the next look finds what it has said.
                with suppress(ConnectionError):
                    rest = rest[connection.send(rest, socket.MSG_DONTWAIT) :]

    def _hear(self, read: Callable[[socket.socket], object]) -> None:
        try:
            read(self._connection)
        except TimeoutError as error:
            # Its own Timeout is one of these as well, and says more.
            raise error if isinstance(error, Timeout) else _silent() from None
        except Disconnected:
            raise Closed("the gateway has gone in the middle of its work") from None

    def close(self) -> None:
        """End the connection; what was not sent on yet may or may not reach the group."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(settings: Settings) -> Client:
    """A client of the gateway with these settings, which is started if there is none.

    Raises what the gateway says: JoinFailed or Timeout when there is no group, ConfigError.
    """
    path_base = settings.path_base()
    until, client_timeout = time.monotonic() + START_TIMEOUT, 2 * settings.timeout + START_TIMEOUT
    child: subprocess.Popen[bytes] | None = None
    while time.monotonic() < until:
        connection = _try_connect(path_base, client_timeout)
        if connection is None:
            child = _attended(path_base, settings, child)
            time.sleep(PAUSE)
        elif _is_accepted(connection):
            return Client(connection, client_timeout)
        else:  # It was about to leave.
            time.sleep(PAUSE)
    raise ConfigError(f"the gateway did not start: see {path_base.with_suffix(LOG)}")


def _try_connect(path_base: Path, timeout: float) -> socket.socket | None:
    """A connection; None when no gateway listens."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(path_base.with_suffix(SOCKET)))
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    return connection


def _is_accepted(connection: socket.socket) -> bool:
    """Whether the gateway takes this client; it may be about to leave. Raises what it says."""
    try:
        read_reply(connection)
    except Disconnected:
        connection.close()
        return False
    except BaseException as error:
        connection.close()
        if isinstance(error, TimeoutError) and not isinstance(error, Timeout):
            raise _silent() from None
        raise
    return True


def _attended(
    path_base: Path, settings: Settings, child: subprocess.Popen[bytes] | None
) -> subprocess.Popen[bytes]:
    """A gateway that starts; another when the last one has ended. Raises ConfigError."""
    if child is not None and child.poll() is None:
        return child
    if child is not None and child.returncode not in (0, 1):  # 1: it told its clients why.
        log = path_base.with_suffix(LOG).read_text(errors="replace").strip().splitlines()
        why = log[-1] if log else f"status {child.returncode}"
        raise ConfigError(f"the gateway did not start: {why}")
    _started[:] = [started for started in _started if started.poll() is None]
    child = _start(path_base, settings)
    _started.append(child)
    return child


def _start(path_base: Path, settings: Settings) -> subprocess.Popen[bytes]:
    """The process, in a session of its own: who started it may go, and be killed."""
    command = [sys.executable, "-P", "-m", "ringcast.gateway"]
    # The package may have come to this process in any way; the gateway finds it in the same.
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    with path_base.with_suffix(LOG).open("wb") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path},
            cwd="/",
            start_new_session=True,
        )
    assert child.stdin is not None
    with child.stdin as stdin:
        stdin.write(settings.to_json().encode())
    return child


def _silent() -> Closed:
    return Closed("the gateway does not answer: end its process")
