"""The journal's own errors: a recorder stops on them, its group does not."""

from __future__ import annotations

from ringcast.errors import RingcastError


class JournalError(RingcastError):
    """The journal cannot be written or read on; the sentence says what to do."""


class JournalFull(JournalError):
    """The disk is full. What was synced is safe; free some space and start a recorder again."""


class DataLost(JournalError):
    """Retention removed messages that this reader had still to read."""
