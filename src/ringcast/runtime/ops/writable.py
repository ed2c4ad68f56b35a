"""Directories that something is to be written to: looked at before the work, not after it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def check_writable(directory: Path) -> None:
    """Raises the OSError that writing there would raise."""
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))
