"""The gateway itself: takes messages from its clients, sends them, and says when all have them.

One thread a client: it reads a frame, sends it, and reads the next, so that a full window stops
the client by the socket's own buffer. A client that goes in the middle of a frame leaves a prefix
of its messages in the group, never a hole.

A question is answered when nothing is outstanding. While one is open the other clients' messages
wait, or they would keep the window from ever being empty; questions that come meanwhile are
answered together.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from ringcast.core.model.batch import Payload
from ringcast.errors import Closed, RingcastError, Timeout
from ringcast.gateway.delivery import NAME, DeliveryWatch
from ringcast.gateway.protocol import BUSY, Disconnected, read_frame, reply_of
from ringcast.gateway.settings import Settings
from ringcast.runtime.ops.key_reload import reload_at_hangup
from ringcast.runtime.system.accepting import accept
from ringcast.spec import StackSpec
from ringcast.sync import Group, join

CLIENTS_MAX = 1_024
"""Clients at the same time; more find the listener closed, and try again."""
LINGER = 2.0
"""Seconds that clients have to hear that the gateway was not able to join."""
LEAVE_TIMEOUT = 10.0
"""Seconds until a gateway goes without waiting for the others' consent."""
BUSY_INTERVAL = 1.0
"""Seconds after which a client that waits hears that the gateway is still there."""
LOOK_INTERVAL = 0.25
"""Seconds after which it looks whether it is idle, or its member closed."""


class Gateway:
    """A member of the group, and the listener to it. `run` it once."""

    def __init__(
        self, settings: Settings, listener: socket.socket, on_close: Callable[[], None]
    ) -> None:
        """The listener is a socket that listens; `on_close` is called before it is closed."""
        self._settings = settings
        self._listener = listener
        self._on_close = on_close
        self._watch = DeliveryWatch(settings.min_receivers)
        self._group: Group | None = None
        self._failure: Exception | None = None
        self._is_joined = threading.Event()
        """Set when the join is over, well or not."""
        self._lock = threading.Lock()
        self._clients = self._visits = 0
        self._idle_since = time.monotonic()
        self._is_closing = False
        self._gate = FlushGate()

    def run(self) -> Exception | None:
        """Join, serve until clients stop connecting, leave; return what went wrong, or None."""
        threading.Thread(target=self._accept, name="ringcast-listener", daemon=True).start()
        try:
            self._group = self._join()
        except RingcastError as error:
            self._failure = error
        self._is_joined.set()
        if self._group is None:
            _wait_until(lambda: self._visits > 0, LINGER)  # Its client connects to hear why.
            self._stop_listening()
            _wait_until(lambda: not self._clients, LINGER)
        else:
            self._serve(self._group)
        return self._failure

    def _stop_listening(self) -> None:
        """Accept no more clients; one that was not accepted starts another gateway."""
        with self._lock:
            self._is_closing = True
        self._on_close()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _join(self) -> Group:
        settings = self._settings
        # It never creates a group: there would be no receiver.
        spec = StackSpec.from_toml(settings.spec).replace("Discovery", when_alone="wait")
        name = f"{NAME}{socket.gethostname()}"
        return join(
            settings.group, spec, name=name, timeout=settings.timeout,
            receive=False, observer=self._watch, key_file=settings.key_file or None,
        )  # fmt: skip

    def _serve(self, group: Group) -> None:
        reload_at_hangup(group)
        while not self._watch.is_over and not self._is_idle():
            time.sleep(LOOK_INTERVAL)
        self._stop_listening()
        if self._watch.is_over:
            self._failure = Closed(f"the group is closed: {group.closed}")
            _wait_until(lambda: not self._clients, LINGER)
        else:
            group.leave(timeout=LEAVE_TIMEOUT)

    def _is_idle(self) -> bool:
        """Whether no client connected for long enough; if so, none is accepted from now on."""
        with self._lock:
            idle = time.monotonic() - self._idle_since
            self._is_closing = not self._clients and idle >= self._settings.idle
            return self._is_closing

    # Clients --------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while (connection := accept(self._listener)) is not None:
            with self._lock:
                is_accepted = not self._is_closing and self._clients < CLIENTS_MAX
                self._clients += is_accepted
                self._visits += is_accepted
            if is_accepted:
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _attend(self, connection: socket.socket) -> None:
        """One client, until it goes."""
        try:
            with connection, contextlib.suppress(Disconnected, OSError):
                try:
                    self._talk(connection)
                except RingcastError as error:
                    connection.sendall(reply_of(error))
                    _drain_input(connection)
        finally:
            with self._lock:
                self._clients -= 1
                self._idle_since = time.monotonic()

    def _talk(self, connection: socket.socket) -> None:
        settings, watch = self._settings, self._watch
        self._is_joined.wait()
        if self._group is None:
            assert self._failure is not None
            raise self._failure
        begun = watch.begin_work(settings.timeout)
        connection.sendall(reply_of(None))
        while True:
            messages = read_frame(connection)
            if messages:
                self._send(self._group, messages, connection)
            else:
                self._flush(self._group, connection)
                watch.check(begun)
                connection.sendall(reply_of(None))

    def _send(self, group: Group, messages: Sequence[Payload], connection: socket.socket) -> None:
        """Send, as long as that takes, if only the receivers get on within the time they have."""
        self._gate.wait_to_send(lambda: connection.sendall(BUSY))
        while messages:
            before = self._watch.delivered
            try:
                group.send_many(messages, timeout=self._settings.timeout)
                return
            except Timeout as error:
                if not error.sent and self._watch.delivered == before:
                    raise
                messages = messages[error.sent :]
                connection.sendall(BUSY)

    def _flush(self, group: Group, connection: socket.socket) -> None:
        """Wait for all members, as long as they get on."""
        watch, seconds = self._watch, self._settings.timeout
        with self._gate.flushing():
            before, moved = watch.delivered, time.monotonic()
            while not watch.flush(min(BUSY_INTERVAL, seconds / 2)):
                if watch.delivered > before:
                    before, moved = watch.delivered, time.monotonic()
                elif time.monotonic() - moved > seconds:
                    raise _too_slow(group, seconds)
                connection.sendall(BUSY)


class FlushGate:
    """Who may go on: those who send, or those who wait until all is delivered."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._flushing = 0

    def wait_to_send(self, say_busy: Callable[[], None]) -> None:
        """Wait until no question is open."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: not self._flushing, BUSY_INTERVAL):
                    return
            say_busy()

    @contextlib.contextmanager
    def flushing(self) -> Iterator[None]:
        """While inside, no client begins to send."""
        with self._changed:
            self._flushing += 1
        try:
            yield
        finally:
            with self._changed:
                self._flushing -= 1
                self._changed.notify_all()


def _too_slow(group: Group, seconds: float) -> Timeout:
    names = ", ".join(group.stats()["waits_for"])
    return Timeout(
        f"no member has taken a message for {seconds:g} seconds: waited for "
        f"{names or 'the view to change'}; see why, or give more time"
    )


def _wait_until(is_true: Callable[[], bool], timeout: float) -> None:
    until = time.monotonic() + timeout
    while not is_true() and time.monotonic() < until:
        time.sleep(0.01)


def _drain_input(connection: socket.socket) -> None:
    """Let a client that is told of an error finish what it says, so that it comes to hear it."""
    connection.settimeout(LINGER)
    while connection.recv(1 << 16):
        pass
