"""A member's figures for Prometheus, at a port: `GET /metrics`, and nothing else."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer

from ringcast.errors import ConfigError
from ringcast.runtime.endpoints import join_endpoint, split_endpoint
from ringcast.runtime.metrics import render
from ringcast.runtime.plain import Plain

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATH = "/metrics"
REQUEST_TIMEOUT = 2.0
"""Seconds that one who asks has to say what, and to take the answer; others wait meanwhile."""

log = logging.getLogger("ringcast.metrics")


class Exporter:
    """Answers scrapes in a thread of its own until `close`."""

    def __init__(self, where: int | str, status: Callable[[], Plain]) -> None:
        """where: a port of this machine's loopback address, or "host:port". Raises ConfigError."""
        host, port = _split(where)

        class Handler(_Handler):
            snapshot = staticmethod(status)

        try:
            server = _SixServer if ":" in host else HTTPServer
            self._server = server((host, port), Handler)
        except OSError as error:
            raise ConfigError(
                f"no metrics can be served at {join_endpoint(host, port)} ({error.strerror}):"
                " choose another port, or 0 for a free one"
            ) from None
        self.endpoint = join_endpoint(host, int(self._server.server_address[1]))
        self._over = False
        self._thread = threading.Thread(target=self._run, name="ringcast-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._over = True
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)  # Wakes the thread.
        self._thread.join()
        self._server.server_close()

    def _run(self) -> None:
        # The server's own loop would look twice a second whether it is to end.
        while not self._over:
            self._server.handle_request()


class _SixServer(HTTPServer):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_TIMEOUT
    snapshot: Callable[[], Plain]

    def do_GET(self) -> None:
        """Answer a scrape."""
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"the figures are at {PATH}")
            return
        body = render(self.snapshot()).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Not to standard error."""
        log.debug(format, *arguments)


def _split(where: int | str) -> tuple[str, int]:
    if isinstance(where, int):
        if not 0 <= where <= 65_535:
            raise ConfigError(f"metrics is {where}: give a port from 0 to 65535, or host:port")
        return "127.0.0.1", where
    if not isinstance(where, str):
        raise ConfigError(f"metrics is {where!r}: give a port, or host:port")
    return split_endpoint(where)
