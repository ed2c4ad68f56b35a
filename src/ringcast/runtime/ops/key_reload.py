"""Key files are read anew at SIGHUP."""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING

from ringcast.errors import RingcastError

if TYPE_CHECKING:
    from ringcast.runtime.api.base import GroupBase

log = logging.getLogger("ringcast.keys")


def reload_at_hangup(group: GroupBase) -> None:
    """Reload the keys of a group at SIGHUP; a process without a key ends at it, as before."""
    is_main = threading.current_thread() is threading.main_thread()  # Others can handle no signal.
    if is_main and group.stats()["key_ids"]:
        # A thread of its own: the signal may have interrupted a call of the group.
        signal.signal(
            signal.SIGHUP, lambda *_: threading.Thread(target=_reload, args=(group,)).start()
        )


def _reload(group: GroupBase) -> None:
    try:
        group.reload_keys()
    except RingcastError as error:
        log.warning("the keys stay as they are: %s", error)
    else:
        log.info("the keys were read anew: %s", group.stats()["key_ids"])
