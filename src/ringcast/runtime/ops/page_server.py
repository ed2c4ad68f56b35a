"""A small HTTP server in a thread of its own: answers GET, within bounds of time."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, NamedTuple

from ringcast.core.model.text import printable
from ringcast.errors import ConfigError
from ringcast.runtime.net.endpoints import join_endpoint
from ringcast.runtime.system.accepting import is_passing

if TYPE_CHECKING:
    from typing_extensions import Buffer

REQUEST_TIMEOUT = 2.0
"""Seconds that a client has for its whole request, and again for the answer; others wait."""

log = logging.getLogger("ringcast.http")


class Page(NamedTuple):
    """What a path leads to."""

    content_type: str
    body: bytes
    status: HTTPStatus = HTTPStatus.OK


Answer = Callable[[str, str], Page]
"""Makes the page of a path, given the name that the client used for this server."""


class PageServer:
    """Answers requests until `close`."""

    def __init__(self, what: str, host: str, port: int, answer: Answer) -> None:
        """what: is served, for the error message. Raises ConfigError."""

        class Handler(_Handler):
            page = staticmethod(answer)

        try:
            server = _SixServer if ":" in host else _Server
            self._server = server((host, port), Handler)
        except OSError as error:
            raise ConfigError(
                f"no {what} can be served at {join_endpoint(host, port)} ({error.strerror}):"
                " choose another address or port; 0 is a free one"
            ) from None
        except (TypeError, ValueError):  # A name that the resolver cannot be asked for.
            raise ConfigError(f'"{printable(host)}" is not the name of a host') from None
        self.endpoint = join_endpoint(host, int(self._server.server_address[1]))
        self._over = False
        self._thread = threading.Thread(target=self._run, name="ringcast-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering; waits at most for the request that is being answered."""
        self._over = True
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)  # Wakes the thread.
        self._thread.join()
        self._server.server_close()

    def _run(self) -> None:
        # The server's own loop would check twice a second whether to end.
        while not self._over:
            self._server.handle_request()


class _Server(HTTPServer):
    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection; where none can be had for a while, pause instead of spinning."""
        try:
            return super().get_request()
        except OSError as error:
            is_passing(error)
            raise

    def handle_error(self, request: object, client_address: object) -> None:
        """Note a client that has gone in the middle; without this, a traceback is printed."""
        log.debug("a request of %s has failed", client_address, exc_info=True)


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _RequestReader(io.RawIOBase):
    """Reads a request within one deadline, however slowly its bytes arrive."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._until = time.monotonic() + REQUEST_TIMEOUT

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_TIMEOUT
    page: Answer

    def setup(self) -> None:
        """Bound the time of the request as a whole."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_RequestReader(self.connection))

    def do_GET(self) -> None:
        """Answer a request."""
        page = self.page(self.path.partition("?")[0], self.headers.get("Host", ""))
        if page.status is not HTTPStatus.OK:
            self.send_error(page.status, page.body.decode())
            return
        self.connection.settimeout(REQUEST_TIMEOUT)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page.body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Not to standard error."""
        log.debug(format, *arguments)
