"""A listener outlives a time without descriptors, and ends when it is closed."""

from __future__ import annotations

import errno
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.ops.exporter import Exporter
from ringcast.runtime.system import accepting

SOON = 10.0


@contextmanager
def without_descriptors() -> Iterator[None]:
    """The process can open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once an `accept` has failed for lack of descriptors; nothing is waited for then."""
    event = threading.Event()
    monkeypatch.setattr(accepting, "pause", event.set)
    return event


class Listener(socket.socket):
    """A listener whose `accept` fails in these ways first."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            raise OSError(self.failures.pop(), "no connection this time")
        return super().accept()


def test_a_listener_outlives_what_passes(paused: threading.Event) -> None:
    with Listener(socket.AF_INET) as listener, socket.socket() as caller:
        listener.failures = [errno.ECONNABORTED, errno.EMFILE]
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        caller.connect(listener.getsockname())
        connection = accepting.accept(listener)
        assert connection is not None
        assert connection.getpeername() == caller.getsockname()
        connection.close()
    assert paused.is_set()


def test_metrics_are_served_after_their_process_ran_out_of_descriptors(
    paused: threading.Event,
) -> None:
    exporter = Exporter(0, dict)
    try:
        with socket.socket() as client:
            client.settimeout(SOON)
            with without_descriptors():
                client.connect(split_endpoint(exporter.endpoint))
                assert paused.wait(SOON)
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert client.recv(1_000).startswith(b"HTTP/1.0 200 OK")
    finally:
        exporter.close()


def test_a_listener_that_is_closed_ends_the_wait() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def wait() -> None:
            if accepting.accept(listener) is None:
                ended.set()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        listener.shutdown(socket.SHUT_RDWR)
        assert ended.wait(SOON)
        thread.join(SOON)
