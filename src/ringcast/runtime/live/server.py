"""The live view as a web page: one file without anything from elsewhere, and its data as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files

from ringcast.runtime.live.watch import Snapshot
from ringcast.runtime.ops.page_server import Page, PageServer

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
HTML, JSON = "text/html; charset=utf-8", "application/json"


class LivePage(PageServer):
    """Serves the page at `/`, and at `/group.json` what it shows; it changes nothing."""

    def __init__(self, host: str, port: int, look: Callable[[], Snapshot]) -> None:
        """Raises ConfigError."""
        page = files("ringcast.runtime.live").joinpath("page.html").read_bytes()
        lock = threading.Lock()

        def answer(path: str, asked: str) -> Page:
            # A page elsewhere may have its own name point here: only names of this machine do.
            if host in LOOPBACK and _name(asked) not in LOOPBACK:
                return Page("", b"use 127.0.0.1 or localhost", HTTPStatus.FORBIDDEN)
            if path == "/":
                return Page(HTML, page)
            if path == "/group.json":
                with lock:
                    return Page(JSON, json.dumps(look()).encode())
            return Page("", b"the page is at /, its data at /group.json", HTTPStatus.NOT_FOUND)

        super().__init__("live view", host, port, answer)


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host
