"""The private directory in which the members of one user on this machine can be asked.

No other user may enter it: that is checked, since /tmp belongs to all users.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ringcast.errors import ConfigError


def run_directory(create: bool = False) -> Path:
    """$XDG_RUNTIME_DIR/ringcast, or /tmp/ringcast-<uid>; made if asked, then checked.

    Raises ConfigError when it is not this user's own, or others may enter it.
    """
    home = os.environ.get("XDG_RUNTIME_DIR", "")
    path = Path(home, "ringcast") if home else Path(f"/tmp/ringcast-{os.getuid()}")
    try:
        if create:
            path.mkdir(mode=0o700, exist_ok=True)
        _check(path)
    except FileNotFoundError:
        if create:
            raise ConfigError(
                f"{path.parent} does not exist: make it, or unset XDG_RUNTIME_DIR"
            ) from None
    except OSError as error:
        raise ConfigError(f"cannot use {path} ({error.strerror}): set XDG_RUNTIME_DIR") from None
    return path


def _check(path: Path) -> None:
    found = path.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    if not is_private or found.st_uid != os.getuid():
        raise ConfigError(
            f"{path} is not a directory that only this user can enter: remove it,"
            " or set XDG_RUNTIME_DIR to one that is"
        )
