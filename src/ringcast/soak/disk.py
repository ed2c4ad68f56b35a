"""Small disks for a soak: a file system in memory, which one member has for itself, fills at once.

It is mounted in a mount namespace of the member's own, so it needs no rights, and is gone with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

JOURNAL_BYTES = 256 << 10
"""Less than the messages of a second."""
TRACE_BYTES = 16 << 10
"""Less than the first file of a trace."""
MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$0" && shift && exec "$@"'


def on_small_disk(directory: Path, nbytes: int) -> Sequence[str]:
    """The command that runs another one with a small disk at this place, as root of a namespace."""
    return ("unshare", "-m", "sh", "-c", MOUNT, str(directory), str(nbytes))
