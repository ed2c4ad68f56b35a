"""The open log of a recorder: appended to in memory, written in large pieces, synced when asked."""

from __future__ import annotations

from ringcast.journal.format.files import Files, create_locked
from ringcast.journal.format.layout import Layout
from ringcast.journal.format.log_records import Header, header_record


class OpenLog:
    """A log that is locked while its recorder lives. Raises OSError when the disk does."""

    def __init__(self, files: Files, layout: Layout, name: str, header: Header) -> None:
        self.name = name
        self.size = 0
        """Bytes of its records, the header left out."""
        self.first_at: int | None = None
        """When the first record was appended."""
        self._files = files
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._unsynced = True
        self._fd = create_locked(files, layout.log(name))
        try:
            files.write(self._fd, header_record(header))
            # The name must be on the disk before the first sync may promise anything.
            files.sync_dir(layout.logs)
        except OSError:
            files.unlink(layout.log(name))
            self.close()
            raise

    def append(self, record: bytes, now: int | None) -> None:
        """Add a record; it is in memory until enough have come together, or `flush`.

        Without a time it is nothing that a segment would have to be sealed for.
        """
        if self.first_at is None:
            self.first_at = now
        self.size += len(record)
        self._unsynced = True
        self._waiting.append(record)
        self._waiting_bytes += len(record)
        if self._waiting_bytes >= WAITING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system: it now survives the death of this process."""
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            self._files.write(self._fd, data)

    def sync(self) -> None:
        """Return when everything appended is on the disk."""
        self.flush()
        if self._unsynced:
            self._files.sync(self._fd)
            self._unsynced = False

    def close(self) -> None:
        """Close the file and drop the lock; what was not flushed is lost."""
        self._files.close(self._fd)


WAITING_BYTES_MAX = 256 * 1024
