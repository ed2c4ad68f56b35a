"""The recorder's side of the journal: append runs, sync them, seal them into segments."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ringcast.errors import Closed, ConfigError, LocalError, TooLarge
from ringcast.journal.format.checkpoint import checkpoint_lock, lines_of
from ringcast.journal.format.coverage import Coverage
from ringcast.journal.format.files import Files, is_locked, sentences
from ringcast.journal.format.layout import (
    SIGNED_MAX,
    Layout,
    name_of,
    number_of,
    signed,
    stem_of,
)
from ringcast.journal.format.log_records import Header, run_record, skip_record, view_record
from ringcast.journal.format.manifest import CLOSED, ROLLED, Segment, read_removed
from ringcast.journal.format.members import Known, SeenView
from ringcast.journal.read.reader import Journal, in_order_of_sealing
from ringcast.journal.write.fold import fold
from ringcast.journal.write.log import OpenLog
from ringcast.journal.write.recover import wall_us
from ringcast.journal.write.retention import Retention, removable, remove, removed_paths
from ringcast.journal.write.seal import Clock, seal_log

Payload = bytes | memoryview


class JournalWriter:
    """Writes what one recorder delivers. One thread at a time; every call may wait for the disk.

    - `append` after each delivery, `skip` when the group says that messages will not come;
    - `sync` before anything is acked that must not be lost;
    - `tick` now and then, so that a segment is also sealed when nothing more comes;
    - `close` in the end.

    With `durable`, `sync` forces the disk; without, it only hands everything to the operating
    system, which survives the death of the process but not of the machine. Raises JournalFull or
    JournalError when the disk fails: the writer is then finished, the journal is readable, and
    `recover` seals what is left as soon as there is room.
    """

    def __init__(
        self,
        directory: str | Path,
        group: str,
        recorder: int,
        *,
        roll_bytes: int = 64 * 2**20,
        roll_seconds: float = 1.0,
        retention_bytes: int | None = None,
        retention_seconds: float | None = None,
        durable: bool = True,
        files: Files | None = None,
        now: Clock = wall_us,
    ) -> None:
        if roll_bytes <= 0 or not 0 < roll_seconds < math.inf:
            raise ConfigError("roll_bytes and roll_seconds must be positive")
        if importlib.util.find_spec("pyarrow") is None:
            raise ConfigError("a journal needs pyarrow: run `pip install 'ringcast[journal]'`")
        self.group = group
        self.recorder = signed(recorder)
        self.durable = durable
        self._roll_bytes = roll_bytes
        self._roll_us = round(roll_seconds * 1_000_000)
        self._retention = Retention(bytes=retention_bytes, seconds=retention_seconds)
        self._files = files or Files()
        self._now = now
        self._layout = Layout(Path(directory))
        self._stem = stem_of(group, self.recorder)
        self._coverage = Coverage()
        self._names: dict[int, str] = {}
        self._log: OpenLog | None = None
        self._sealed = 0
        self._journal: Journal | None = None
        self._found_at: int | None = None
        """When the newest segment was sealed that was there before."""
        with sentences(self._layout.root):
            self._make_dirs()
            self._number = self._last_number()
            self._log = self._open_next()

    def append(
        self,
        view: int,
        view_by: int,
        sender: int,
        first: int,
        payloads: Sequence[Payload],
        *,
        sent_at: int,
        delivered_at: int,
    ) -> None:
        """Add one run, whose messages were sent and delivered together; times in microseconds.

        Raises LocalError when it does not follow the sender's last run of this view.
        """
        log, who = self._open(), signed(sender)
        at, last = (view, signed(view_by)), first + len(payloads) - 1
        if not payloads:
            return
        self._check_follows(*at, who, first, last)
        for start, part in _parts(first, payloads):
            record = run_record(*at, who, start, part, sent_at=sent_at, delivered_at=delivered_at)
            with sentences(self._layout.root, self._fail):
                log.append(record, self._now())
        self._coverage.add(*at, who, first, len(payloads))
        if log.size >= self._roll_bytes:
            self.seal()

    def skip(self, view: int, view_by: int, sender: int, first: int, last: int) -> None:
        """Note that messages first to last will never come here: another recorder may have them."""
        log, who, at = self._open(), signed(sender), (view, signed(view_by))
        self._check_follows(*at, who, first, last)
        with sentences(self._layout.root, self._fail):
            log.append(skip_record(*at, who, first, last), self._now())
        self._coverage.skip(*at, who, first, last)

    def view(self, view: int, view_by: int, members: Iterable[Known], *, at: int) -> None:
        """Note who is in the view that was installed: address, name and endpoint of each member.

        What is appended from here on carries the name of its sender.
        """
        log = self._open()
        known = [(signed(address), name, endpoint) for address, name, endpoint in members]
        self._names = {address: name for address, name, _ in known}
        with sentences(self._layout.root, self._fail):
            log.append(view_record(SeenView(view, signed(view_by), at), known), None)

    def sync(self) -> None:
        """Return when everything appended before is durable."""
        log = self._open()
        with sentences(self._layout.root, self._fail):
            if self.durable:
                log.sync()
            else:
                log.flush()

    def tick(self) -> float:
        """Seal a segment that is due; returns the seconds within which to call again."""
        left = self._left_us()
        if left <= 0:
            self.seal()
            left = self._left_us()
        return left / 1_000_000

    def seal(self) -> None:
        """Make everything appended visible to readers, and apply the retention."""
        log = self._open()
        if log.first_at is None:
            return
        with sentences(self._layout.root, self._fail):
            log.flush()
            # The next log is there before this one goes: its lock shows at all times that we live.
            self._log = self._open_next()
            self._seal(log, ROLLED)
            self._sealed += 1
            fold_now = self._sealed % FOLD_SEGMENTS == 0
            if fold_now or self._retention != Retention():
                self._tidy(fold_now)

    def close(self) -> None:
        """Seal, and let the journal go. A second call does nothing."""
        log, self._log = self._log, None
        if log is None:
            return
        with sentences(self._layout.root):
            self._seal(log, CLOSED)

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seal(self, log: OpenLog, ended: str) -> Segment | None:
        try:
            log.flush()
            return seal_log(self._files, self._layout, log.name, ended=ended, now=self._now)
        finally:
            log.close()

    def _tidy(self, fold_now: bool) -> None:
        """Apply the retention and fold manifests, unless a compaction is busy: next time then."""
        with checkpoint_lock(self._files, self._layout) as mine:
            if mine and self._retention != Retention():
                self._retain()
            if mine and fold_now:
                fold(self._files, self._layout)

    def _retain(self) -> None:
        journal = self._journal or Journal(self._layout.root)
        self._journal = journal
        journal.refresh()
        ours = [segment for segment in journal.segments if segment.group == self.group]
        if self._found_at is None:
            found = (s.sealed_at for s in ours if s.recorder != self.recorder)
            self._found_at = max(found, default=0)
        # What this recorder seals is newer than what it found, though its clock was set back.
        ours = in_order_of_sealing(ours, {self.recorder: self._found_at})
        ours = removable(self._files, self._layout, self._stem, ours)
        expired = self._retention.expired(ours, self._now())
        remove(self._files, self._layout, self._stem, expired, journal.folded)

    def _open_next(self) -> OpenLog:
        self._number += 1
        header = Header(
            group=self.group,
            recorder=self.recorder,
            number=self._number,
            opened_at=self._now(),
            durable=self.durable,
            reached=self._coverage.carry(),
            names=self._names,
        )
        name = name_of(self._stem, self._number)
        return OpenLog(self._files, self._layout, name, header)

    def _open(self) -> OpenLog:
        if self._log is None:
            raise Closed("the journal's writer is closed, or failed: make a new one")
        return self._log

    def _fail(self) -> None:
        """The disk failed: stop, and let the lock go, so that what is left can be recovered."""
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _left_us(self) -> int:
        """How long the open segment may stay open; all of its time when it is empty."""
        first_at, now = self._open().first_at, self._now()
        if first_at is None:
            return self._roll_us
        # A clock that was set back would keep the segment open for ever.
        return 0 if now < first_at else first_at + self._roll_us - now

    def _check_follows(self, view: int, view_by: int, sender: int, first: int, last: int) -> None:
        reached = self._coverage.reached(view, view_by, sender)
        if not reached < first <= last <= SIGNED_MAX:
            raise LocalError(
                f"messages {first} to {last} of sender {sender} do not follow {reached}, the last "
                f"that was recorded in view {view}: append each run once, in order"
            )

    def _make_dirs(self) -> None:
        self._layout.root.parent.mkdir(parents=True, exist_ok=True)
        for path in (self._layout.root, self._layout.manifests, self._layout.logs):
            if not path.is_dir():
                self._files.make_dir(path)
                self._files.sync_dir(path.parent)

    def _last_number(self) -> int:
        """The highest number ever used under our name; 0 for a new recorder."""
        layout = self._layout
        logs = [name for name in layout.log_names() if number_of(name, self._stem)]
        if any(is_locked(self._files, layout.log(name)) for name in logs):
            raise LocalError(f"recorder {self.recorder} already writes to {layout.root}")
        names = [*logs, *(path.stem for path in layout.root.glob("*.parquet"))]
        names += [path.stem for path in layout.manifests.glob("*.json")]
        names += lines_of(layout.checkpoint)
        names += [name for path in removed_paths(layout) for name in read_removed(path).names]
        return max((number_of(name, self._stem) for name in names), default=0)


def _parts(first: int, payloads: Sequence[Payload]) -> Iterator[tuple[int, Sequence[Payload]]]:
    """A run in parts that fit a record; hardly ever more than one. Raises TooLarge."""
    if sum(map(len, payloads)) <= RECORD_BYTES_MAX:
        yield first, payloads
        return
    largest = max(map(len, payloads))
    if largest > MESSAGE_BYTES_MAX:
        raise TooLarge(
            f"a message of {largest} bytes is too large for a journal, which takes "
            f"{MESSAGE_BYTES_MAX}"
        )
    start = size = 0
    for index, payload in enumerate(payloads):
        if index > start and size + len(payload) > RECORD_BYTES_MAX:
            yield first + start, payloads[start:index]
            start, size = index, 0
        size += len(payload)
    yield first + start, payloads[start:]


FOLD_SEGMENTS = 1_000
"""After this many segments their manifests are folded into the checkpoint."""
RECORD_BYTES_MAX = 64 * 2**20
MESSAGE_BYTES_MAX = 2**30
