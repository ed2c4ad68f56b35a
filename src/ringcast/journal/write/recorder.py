"""The recorder: a member whose application is the journal.

It takes events, appends what they carry, and syncs before it comes back for more. Coming back is
what acks, so in durable mode a sender forgets a message only when it is on the recorder's disk.

A recorder whose disk fails leaves the group at once, without an ack for what is not safe; the
others go on. One that is told to stop leaves in order: it records until the group has a view
without it, then seals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, Skipped, ViewChange
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.errors import ConfigError, Timeout
from ringcast.journal.format.files import Files
from ringcast.journal.format.layout import Layout
from ringcast.journal.format.manifest import Segment
from ringcast.journal.write.recover import recover, wall_us
from ringcast.journal.write.writer import JournalWriter
from ringcast.runtime.api.base import JOIN_TIMEOUT
from ringcast.runtime.ops.key_reload import reload_at_hangup
from ringcast.runtime.ops.writable import check_writable
from ringcast.spec import StackSpec
from ringcast.sync import Group, join
from ringcast.trace.live import LiveTrace, load_parquet

LEAVE_SECONDS = 2.0
"""Seconds for a view without a recorder whose disk has failed; then the others find out."""
LOOK_INTERVAL = 0.2
"""Seconds after which a recorder that gets nothing looks whether it is to stop."""


class Recorder:
    """Records what one member is given, in the thread that calls `run`.

    `saw`, if given, is called with all events that were taken together, once they are safe.
    """

    def __init__(
        self, group: Group, journal: JournalWriter, saw: Callable[[list[Event]], None] | None = None
    ) -> None:
        self._group = group
        self._journal = journal
        self._saw = saw
        self._view: ViewId = NO_VIEW
        self._stopping = threading.Event()
        self.messages = 0
        """How many are recorded and safe."""
        self._lag_us, self._pending_us = 0, 0
        """How old the last messages were when they were safe; when those were sent that are being
        written, 0 for none."""

    def stop(self) -> None:
        """Leave in order, soon. May be called from any thread, and by a signal's handler."""
        self._stopping.set()

    def figures(self) -> dict[str, int]:
        """What people who watch the group are told of this recorder."""
        pending = self._pending_us
        lag_us = max(self._lag_us, wall_us() - pending if pending else 0)
        return {"recorded": self.messages, "recorder_lag_ms": lag_us // 1_000}

    def run(self) -> None:
        """Record until `stop`, then leave and seal.

        Raises JournalFull or JournalError when the disk fails, Closed when the group ends: the
        member has left then, and what was synced is safe.
        """
        self._group.add_figures(self.figures)
        try:
            self._record()
        except BaseException:
            # It takes no more: what is not safe is never acked.
            self._group.leave(timeout=LEAVE_SECONDS, taking=True)
            with suppress(Exception):  # What went wrong before is what counts.
                self._journal.close()
            raise
        self._journal.close()

    def _record(self) -> None:
        leaver: threading.Thread | None = None
        while True:
            if leaver is None and self._stopping.is_set():
                leaver = self._start_to_leave()
            wait = min(self._journal.tick(), LOOK_INTERVAL)
            with suppress(Timeout):
                events = self._group.take(timeout=wait)
                if not events:
                    break
                self._keep(events)
        if leaver is not None:
            leaver.join()

    def _start_to_leave(self) -> threading.Thread:
        """Leave, beside the loop: what comes until then is recorded, and acked after that."""
        leave = threading.Thread(
            target=self._group.leave, kwargs={"taking": True}, name="ringcast-leave", daemon=True
        )
        leave.start()
        return leave

    def _keep(self, events: list[Event]) -> None:
        """Write down what came, and return when it is safe."""
        now, journal, count = wall_us(), self._journal, 0
        oldest = min([now, *(e.sent_at for e in events if isinstance(e, Batch) and e.sent_at)])
        self._pending_us = oldest
        for event in events:
            if isinstance(event, ViewChange):
                self._view = event.view.id
                peers = ((peer.address, peer.name, peer.endpoint) for peer in event.view.peers)
                journal.view(*self._view, peers, at=now)
            elif isinstance(event, Batch) and event.dest is None:
                journal.append(
                    *self._view, event.sender, event.first, event.payloads,
                    sent_at=event.sent_at, delivered_at=now,
                )  # fmt: skip
                count += len(event)
            elif isinstance(event, Skipped) and not event.direct:
                journal.skip(*self._view, event.sender, event.first, event.last)
        if count:
            journal.sync()
            self._lag_us = max(0, wall_us() - oldest)
        self._pending_us = 0
        self.messages += count
        if self._saw is not None:
            self._saw(events)


def prepare(directory: str | Path) -> list[Segment]:
    """Seal what dead recorders have left; [] where there is no journal yet.

    Raises ConfigError for a directory that cannot be a journal, before a join; JournalError.
    """
    load_parquet()
    if not str(directory):
        raise ConfigError("the directory of the journal is empty: name it")
    there = Path(directory)
    try:
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.mkdir(mode=0o700, exist_ok=True)
            Files().sync_dir(there.parent)
        if there.is_dir():
            check_writable(there)
            if not any(there.iterdir()):
                return []
            if not Layout(there).manifests.is_dir():
                raise ConfigError(
                    f"{there} is not empty, and no journal: name another directory for it"
                )
    except OSError as error:
        raise ConfigError(
            f"the journal {there} cannot be written ({error.strerror}): name another directory"
        ) from None
    return recover(there)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What `ringcast record` is asked for."""

    group: str
    directory: str | Path
    stack: StackSpec | None = None
    durable: bool = True
    name: str = "recorder"
    trace: str | Path | None = None
    """Where to write a trace as well, if anywhere."""
    roll_seconds: float = 1.0
    retention_bytes: int | None = None
    retention_seconds: float | None = None
    timeout: float | None = JOIN_TIMEOUT
    metrics: int | str | None = None
    """Where to serve figures for Prometheus, if anywhere."""
    key_file: str | Path | None = None
    """The keys of a closed group."""

    @property
    def mode(self) -> str:
        """What an ack of this recorder means, in a sentence."""
        if self.durable:
            return "durable: a message is acked when it is on disk"
        return (
            "not durable: a message is acked when the operating system has it, which survives the"
            " end of this process but not of the machine"
        )


def record(
    recording: Recording,
    on_signals: Callable[[Callable[[], None]], None],
    say: Callable[[str], None],
) -> dict[str, object]:
    """Join, record until `on_signals` calls its callback, leave, seal; returns the sums.

    Raises ConfigError, JoinFailed, Timeout; JournalFull and JournalError.
    """
    for segment in prepare(recording.directory):
        say(f"Sealed what a dead recorder has left: {segment.rows:,} messages.")
    observer = None if recording.trace is None else LiveTrace(recording.trace)
    group = join(
        recording.group,
        recording.stack,
        name=recording.name,
        timeout=recording.timeout,
        views=True,
        observer=observer,
        metrics=recording.metrics,
        key_file=recording.key_file,
    )
    recorder = Recorder(group, _journal(recording, group))
    on_signals(recorder.stop)
    reload_at_hangup(group)
    say(f'Recording "{recording.group}" to {recording.directory} from {group.endpoint}')
    say(f"The journal is {recording.mode}.")
    recorder.run()
    say(f"Left and sealed: {recorder.messages:,} messages recorded.")
    return {
        "group": recording.group,
        "journal": str(recording.directory),
        "recorder": str(group.me),
        "durable": recording.durable,
        "messages": recorder.messages,
    }


def _journal(recording: Recording, group: Group) -> JournalWriter:
    try:
        return JournalWriter(
            recording.directory,
            recording.group,
            group.me,
            durable=recording.durable,
            roll_seconds=recording.roll_seconds,
            retention_bytes=recording.retention_bytes,
            retention_seconds=recording.retention_seconds,
        )
    except BaseException:
        group.close()
        raise
