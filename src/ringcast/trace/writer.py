"""Writes the trace of one member: cheap notes as things happen, Parquet when the caller has time.

Rules:

- No threads and no clock: the owner of the writer calls `tick` now and then, with the time.
- A note is packed into a buffer. Rows leave memory in row groups, as soon as a group is full.
- A file gets its name, which has its checksum, when it is whole. A process that dies loses the
  rows since the last rotation, `rotate_seconds` at the most, and leaves only whole files.
- Nothing is synced: this is a measurement and not a record, which is what the journal is for.
- Rows about messages and the other ones go to row groups of their own. A reader that looks for
  views among twenty million deliveries then finds them by the statistics, and skips the rest.

Time stamps decide whether a purge was early. So a delivery is stamped before the ack that it causes
can leave (the time of the step), and a purge after the ack that allowed it was read (the end of
the step); then the order holds between the processes of a machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.errors import Closed, ConfigError
from ringcast.runtime.ops.writable import check_writable
from ringcast.trace.checksum import trace_name
from ringcast.trace.compaction.names import last_number
from ringcast.trace.row_encoding import DELIVERED_CODE, NOTE, SENT_CODE, SKIPPED_CODE, pack
from ringcast.trace.schema import (
    ACKED,
    AGREED,
    BLOCKED,
    CLOSED,
    COUNT_MAX,
    PURGED,
    REQUESTED,
    RESENT,
    VIEW,
    WINDOW,
    Row,
)

if TYPE_CHECKING:
    from ringcast.trace.table import Sheet

NO_DIGEST = -1
"""Stands for a digest that nobody computed."""
NO_PLACE = -1
"""Stands for the place of what an application is not given."""


@dataclass(frozen=True, kw_only=True)
class TraceSpec:
    """When a trace goes to disk."""

    group_rows: int = 16_384
    """Rows that are kept in memory and written together; more save space, and stall longer."""
    rotate_seconds: float = 10.0
    """How old a file gets; what a crash may lose, against the number of files."""
    rotate_rows: int = 4_000_000
    """How many rows a file gets."""

    def __post_init__(self) -> None:
        if min(self.group_rows, self.rotate_rows) < 1 or self.rotate_seconds <= 0:
            raise ConfigError("group_rows, rotate_rows and rotate_seconds of a trace start at 1.")


class TraceWriter:
    """The trace of one member. Times are microseconds since 1970; sequence numbers are the stack's.

    `path` is a directory that the members of a run may share. Close it, or lose the last file.
    """

    def __init__(self, path: str | Path, member: int, spec: TraceSpec | None = None) -> None:
        self.spec = spec or TraceSpec()
        self.member = member
        self._directory = trace_directory(Path(path))
        self._notes = bytearray()
        self._notes_max = self.spec.group_rows * NOTE.size
        self._others: list[Row] = []
        self._view, self._view_by = 0, 0
        self._places: dict[int, int] = {}
        """Sender → how many of its messages were gone through in this view."""
        self._sheet: Sheet | None = None
        self._draft, self._files = Path(), 0
        self._opened_at: int | None = None
        self._closed = False

    # --- notes, in the order of how often they are made ---------------------------------------

    def append_delivered(
        self,
        sender: int,
        seqno: int,
        count: int,
        nbytes: int,
        sent_at: int,
        at: int,
        digest: int = NO_DIGEST,
        place: int = NO_PLACE,
    ) -> None:
        """The application took a run of messages, or it counts as taken."""
        assert 0 < count <= COUNT_MAX, count
        pos = self._places.get(sender, 0)
        self._places[sender] = pos + count
        self._notes += pack(
            self._view, self._view_by, sender, DELIVERED_CODE,
            seqno, count, pos, nbytes, digest, sent_at, at, place,
        )  # fmt: skip
        if len(self._notes) >= self._notes_max:
            self.flush()

    def append_sent(
        self, seqno: int, count: int, nbytes: int, at: int, digest: int = NO_DIGEST
    ) -> None:
        """This member numbered a run of messages of its own."""
        assert 0 < count <= COUNT_MAX, count
        self._notes += pack(
            self._view, self._view_by, self.member, SENT_CODE,
            seqno, count, -1, nbytes, digest, at, at, NO_PLACE,
        )  # fmt: skip
        if len(self._notes) >= self._notes_max:
            self.flush()

    def append_skipped(self, sender: int, seqno: int, count: int, at: int) -> None:
        """A run of messages was given up for good; it takes its place in the order."""
        assert 0 < count <= COUNT_MAX, count
        pos = self._places.get(sender, 0)
        self._places[sender] = pos + count
        self._notes += pack(
            self._view, self._view_by, sender, SKIPPED_CODE,
            seqno, count, pos, 0, NO_DIGEST, at, at, NO_PLACE,
        )  # fmt: skip

    def append_acked(self, peer: int, seqno: int, at: int) -> None:
        """`peer` said that it has delivered this member's messages up to `seqno`."""
        self._add(self._row(self.member, ACKED, at)._replace(seqno=seqno, peer=peer))

    def append_purged(self, seqno: int, count: int, delivered: int, high: int, at: int) -> None:
        """This member forgot a run of its own messages: all have delivered it."""
        row = self._row(self.member, PURGED, at)._replace(seqno=seqno, count=count)
        self._add(row._replace(low=seqno + count - 1, delivered=delivered, high=high))

    def append_window(self, sender: int, low: int, delivered: int, high: int, at: int) -> None:
        """A sample of the window for `sender` (of the send window, if that is this member)."""
        row = self._row(sender, WINDOW, at)
        self._add(row._replace(low=low, delivered=delivered, high=high))

    def append_requested(self, sender: int, seqno: int, count: int, peer: int, at: int) -> None:
        """This member asked `peer` for a run of `sender`."""
        row = self._row(sender, REQUESTED, at)
        self._add(row._replace(seqno=seqno, count=count, peer=peer))

    def append_resent(
        self, sender: int, seqno: int, count: int, nbytes: int, peer: int | None, at: int
    ) -> None:
        """This member sent a run again, to `peer` or to all members."""
        row = self._row(sender, RESENT, at)
        self._add(row._replace(seqno=seqno, count=count, nbytes=nbytes, peer=peer))

    def append_blocked(self, peer: int | None, since: int, at: int) -> None:
        """This member could not send from `since` to `at`, for `peer` or (None) a view change."""
        row = self._row(self.member, BLOCKED, at)
        self._add(row._replace(sent_at=since, peer=peer))

    def append_view(
        self, number: int, by: int, members: Sequence[int], names: Sequence[str], at: int
    ) -> None:
        """This member installed a view; what is noted from now on happens in it."""
        self._view, self._view_by = number, by
        self._places.clear()
        row = self._row(None, VIEW, at)
        self._add(row._replace(members=tuple(members), names=tuple(names)))

    def append_agreed(self, before: tuple[int, int] | None, left: Sequence[int], at: int) -> None:
        """A majority has agreed on this view: `before` is the view agreed on before it (number,
        coordinator), and `left` are the members that have left in order since then."""
        number, by = before or (None, None)
        row = self._row(None, AGREED, at)
        self._add(row._replace(seqno=number, peer=by, members=tuple(left)))

    def append_closed(self, at: int) -> None:
        """This member left in good order: it has delivered all that was sent in its last view.

        Leave it out where that is not so: without it, nobody looks for the last messages.
        """
        self._add(self._row(None, CLOSED, at))

    # --- to disk ------------------------------------------------------------------------------

    def tick(self, at: int) -> None:
        """Write what is due; call it often, it costs little. Raises OSError when the disk does."""
        if self._opened_at is None:
            self._opened_at = at
        if at - self._opened_at >= self.spec.rotate_seconds * 1_000_000:
            self.rotate()
            self._opened_at = at

    def flush(self) -> None:
        """Move the rows in memory to the file that is being written, as row groups.

        Raises Closed after `close`, and OSError when the disk does: the writer is closed then, and
        what it had not given a name to is lost.
        """
        if self._closed:
            raise Closed("The trace is closed: open another one for what comes after.")
        try:
            self._write()
        except OSError:
            self._abandon()
            raise

    def rotate(self) -> None:
        """Finish the file that is being written, and give it its name."""
        self.flush()
        if self._sheet is not None:
            self._sheet.close()
            checksum, self._sheet = self._sheet.checksum, None
            self._draft.rename(self._free_name(checksum))
            self._files += 1

    def close(self) -> None:
        """Write all there is. Closing twice is harmless."""
        if not self._closed:
            self.rotate()
            self._closed = True

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        notes, others = self._notes, self._others
        if not notes and not others:
            return
        if self._sheet is None:
            self._sheet = self._open()
        self._notes, self._others = bytearray(), []
        if notes:
            self._sheet.write_messages(self.member, notes)
        if others:
            self._sheet.write_rows(others)
        if self._sheet.rows >= self.spec.rotate_rows:
            self.rotate()

    def _open(self) -> Sheet:
        # pyarrow takes a while to load, and a member without a trace does not need it at all.
        from ringcast.trace.table import Sheet  # noqa: PLC0415

        # Spark leaves out files whose names begin with a dot.
        self._draft = self._directory / f".{self.member:016x}.parquet.tmp"
        return Sheet(self._draft)

    def _free_name(self, checksum: int) -> Path:
        """A name with a number that no file has, and that no compacted one stands for."""
        member = f"{self.member:016x}"
        while any(self._directory.glob(f"{member}-{self._files:06d}*.parquet")):
            self._files += 1
        # Afterwards: a file that was compacted in between is gone, and this one is there.
        self._files = max(self._files, last_number(self._directory, member) + 1)
        return self._directory / trace_name(self.member, self._files, checksum)

    def _abandon(self) -> None:
        self._closed, self._sheet = True, None
        self._notes, self._others = bytearray(), []
        self._draft.unlink(missing_ok=True)

    def _add(self, row: Row) -> None:
        self._others.append(row)
        if len(self._others) >= self.spec.group_rows:
            self.flush()

    def _row(self, sender: int | None, kind: str, at: int) -> Row:
        return Row(self.member, self._view, self._view_by, sender, kind, at=at)


def digest(payloads: Iterable[bytes | memoryview]) -> int:
    """The sum of the crc32 of some payloads: the same, however they are cut into runs."""
    return sum(map(zlib.crc32, payloads))


def trace_directory(path: Path) -> Path:
    """A directory that traces can be written to; made if it is not there. Raises ConfigError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    except FileExistsError as error:
        raise ConfigError(f"{path} is a file: name a directory for the trace.") from error
    except OSError as error:
        raise ConfigError(f"No trace can be written to {path}: {error.strerror}.") from error
    return path
