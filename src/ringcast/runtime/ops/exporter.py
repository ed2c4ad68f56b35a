"""A member's metrics for Prometheus at `/metrics`, and at `/ready` whether it is in its group."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from ringcast.errors import ConfigError
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.ops.json_fields import Plain, text_in, texts_in
from ringcast.runtime.ops.metrics import render
from ringcast.runtime.ops.page_server import Page, PageServer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATH, READY = "/metrics", "/ready"


class Exporter(PageServer):
    """Answers scrapes in a thread of its own until `close`."""

    def __init__(self, where: int | str, status: Callable[[], Plain]) -> None:
        """where: a port of this machine's loopback address, or "host:port". Raises ConfigError."""

        def answer(path: str, host: str) -> Page:
            if path == READY:
                return _readiness(status())
            if path != PATH:
                reason = f"the metrics are at {PATH}; {READY} is for probes".encode()
                return Page("", reason, HTTPStatus.NOT_FOUND)
            return Page(CONTENT_TYPE, render(status()).encode())

        super().__init__("metrics", *_split(where), answer)


def _readiness(status: Plain) -> Page:
    """For a probe: whether the member is in its group."""
    if closed := text_in(status, "closed"):
        return Page("", closed.encode("latin-1", "replace"), HTTPStatus.SERVICE_UNAVAILABLE)
    if not text_in(status, "view"):
        return Page("", b"it looks for its group", HTTPStatus.SERVICE_UNAVAILABLE)
    count = len(texts_in(status, "members"))
    return Page("text/plain; charset=utf-8", f"in a view with {count} members\n".encode())


def _split(where: int | str) -> tuple[str, int]:
    if isinstance(where, int) and not isinstance(where, bool):
        if not 0 <= where <= 65_535:
            raise ConfigError(f"metrics is {where}: give a port from 0 to 65535, or host:port")
        return "127.0.0.1", where
    if not isinstance(where, str):
        raise ConfigError(f"metrics is {where!r}: give a port, or host:port")
    return split_endpoint(where)
