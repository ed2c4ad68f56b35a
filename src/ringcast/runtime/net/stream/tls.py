"""TLS for the connections of TCP: both sides show a certificate of the group's authority.

A TlsStream stands between a connection and its socket, with the calls of a socket that a connection
uses. It never blocks: what OpenSSL wants to send waits in memory until the network takes it.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import NamedTuple, cast

from ringcast.core.model.batch import Payload
from ringcast.errors import ConfigError
from ringcast.runtime.net.stream.broken import Broken
from ringcast.runtime.net.stream.tls_files import check_files, refused, try_out
from ringcast.transports import Tcp

WRITE_SIZE = 1 << 18
"""Bytes that are encrypted at once, and so wait in memory for the network at the most."""
RECORD_MAX = 1 << 15
"""Bytes of a record and its head, with room to spare: the beginning of one may wait for its end."""
_RECORD = b"\x16"
"""The first byte of every handshake."""


class TlsContexts(NamedTuple):
    """How this member calls, and how it is called."""

    caller: ssl.SSLContext
    callee: ssl.SSLContext


def tls_contexts(spec: Tcp) -> TlsContexts | None:
    """The contexts of a transport with a certificate; None for one without.

    Raises ConfigError when a file is not what it should be.
    """
    if not spec.has_tls:
        return None
    check_files(spec)
    contexts = TlsContexts(
        _context(spec, ssl.PROTOCOL_TLS_CLIENT), _context(spec, ssl.PROTOCOL_TLS_SERVER)
    )
    try_out(spec, *contexts)
    return contexts


def _context(spec: Tcp, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False  # The authority says who is a member, wherever it runs.
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # Connections last; none is resumed.
    try:
        context.load_verify_locations(spec.tls_authority)
    except (OSError, ValueError) as error:
        raise _refused("tls_authority", spec.tls_authority, error) from None
    try:
        # A key with a password is refused: nobody may be there to type it.
        context.load_cert_chain(spec.tls_certificate, spec.tls_key or None, password="")
    except (OSError, ValueError) as error:
        raise _refused("tls_certificate", spec.tls_certificate, error) from None
    return context


def _refused(field: str, path: str, error: Exception) -> ConfigError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return refused(f"Tcp.{field}", path, reason)


class TlsStream:
    """One side of a TLS connection over a socket that does not block."""

    def __init__(self, sock: socket.socket, contexts: TlsContexts, is_caller: bool) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = contexts.caller if is_caller else contexts.callee
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=not is_caller)
        self._unsent = memoryview(b"")
        self._lock = threading.Lock()  # Threads that send and receive share what OpenSSL keeps.
        self._has_heard = False
        self.is_ready = False
        """Whether both sides have shown their certificates, as far as this side can tell."""

    @property
    def has_to_write(self) -> bool:
        """Whether something could leave if the network took it."""
        return bool(self._unsent) or self._outgoing.pending > 0

    def recv_into(self, into: memoryview) -> int:
        """Read as a socket does. Raises Broken for a side that has no right certificate."""
        assert len(into) >= 2 * RECORD_MAX
        with self._lock:
            try:
                return self._read(into)
            except ssl.SSLError as error:
                raise Broken(_reason(error)) from None
            finally:
                self._push()

    def _read(self, into: memoryview) -> int:
        """One read of the socket, and all that can be decrypted then: nothing may stay behind,
        since the poller does not know of it."""
        data = self._sock.recv(len(into) - RECORD_MAX)
        if not data:
            return 0
        if not self._has_heard and data[:1] != _RECORD:
            raise Broken("dropped_no_tls")
        self._has_heard = True
        self._incoming.write(data)
        count = 0
        try:
            if not self.is_ready:
                self._tls.do_handshake()
                self.is_ready = True
            while got := cast(int, self._tls.read(len(into) - count, into[count:])):
                count += got
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            return count
        if not count:
            raise BlockingIOError
        return count

    def send(self, data: Payload) -> int:
        """Send as a socket does; BlockingIOError while certificates are exchanged."""
        with self._lock:
            if not self.is_ready:
                self._shake()
            self._push()
            if self.has_to_write or not self.is_ready:
                raise BlockingIOError
            try:
                count = self._tls.write(memoryview(data)[:WRITE_SIZE])
            except ssl.SSLError as error:
                raise OSError(error.errno, "TLS has ended") from None
            self._push()
            return count

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
            self.is_ready = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            pass  # The next `recv_into` finds it.

    def _push(self) -> None:
        """Send what waits, as far as the network takes it."""
        try:
            while self.has_to_write:
                if not self._unsent:
                    self._unsent = memoryview(self._outgoing.read())
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._unsent = memoryview(b"")  # It is over, which the next read finds.

    def flush(self) -> None:
        """Send what waits, as far as the network takes it."""
        with self._lock:
            self._push()


def _reason(error: ssl.SSLError) -> str:
    """The counter for a connection that TLS has ended."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE" in reason:
        return "refused_by_peer" if "ALERT" in reason else "dropped_wrong_certificate"
    return "refused_by_peer" if "ALERT" in reason else "dropped_tls_error"
