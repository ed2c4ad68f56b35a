"""Certificates and keys in files: what is refused before a member starts, and in which words."""

from __future__ import annotations

import contextlib
import os
import ssl
import stat

from ringcast.errors import ConfigError
from ringcast.transports import Tcp

FILE_SIZE_MAX = 4_000_000
"""Bytes of a PEM file: the authorities of a whole system have a few hundred thousand."""
_KEY_MARK = b"PRIVATE KEY-----"
_FLIGHTS_MAX = 4
"""How often the two sides of a handshake take turns at the most."""


def check_files(spec: Tcp) -> None:
    """Refuse what is no regular file, too large, or a key that other users can use.

    OpenSSL would wait for ever for the other end of a pipe. Raises ConfigError.
    """
    for field in ("tls_authority", "tls_certificate", "tls_key"):
        path: str = getattr(spec, field)
        if path:
            _check(f"Tcp.{field}", path)


def _check(field: str, path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refused(field, path, reason) from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise refused(field, path, "it is not a regular file")
    with os.fdopen(fd, "rb") as file:
        if found.st_size > FILE_SIZE_MAX:
            raise refused(field, path, f"it has more than {FILE_SIZE_MAX:,} bytes")
        if found.st_mode & (stat.S_IRWXO | stat.S_IWGRP) and _KEY_MARK in file.read(FILE_SIZE_MAX):
            raise ConfigError(
                f'{field} is "{path}", which has a key and mode {stat.S_IMODE(found.st_mode):04o},'
                f" so that other users can use it: run `chmod 600 {path}`, and replace the key and"
                " its certificate if others may have read it"
            )


def refused(field: str, path: str, reason: str) -> ConfigError:
    """What is wrong with a file."""
    return ConfigError(
        f'{field} is "{path}", which cannot be used ({reason}):'
        " give a PEM file, with the key of the certificate in it or in tls_key"
    )


def try_out(spec: Tcp, caller: ssl.SSLContext, callee: ssl.SSLContext) -> None:
    """Have a member call itself, in memory: whether its certificate is one that members with its
    authority accept, today and in both roles. Raises ConfigError."""
    to_caller, to_callee = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        caller.wrap_bio(to_caller, to_callee),
        callee.wrap_bio(to_callee, to_caller, server_side=True),
    )
    try:
        for _ in range(_FLIGHTS_MAX):
            for side in sides:
                with contextlib.suppress(ssl.SSLWantReadError):
                    side.do_handshake()
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        raise ConfigError(
            f'Tcp.tls_certificate is "{spec.tls_certificate}", which other members would refuse'
            f" ({reason}): give one of Tcp.tls_authority that is valid now, for clients and servers"
        ) from None
