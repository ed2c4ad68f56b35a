"""Key files are read anew at SIGHUP."""

from __future__ import annotations

import logging
import signal
import threading

from ringcast.errors import RingcastError
from ringcast.sync import Group

log = logging.getLogger("ringcast.keys")


def reload_at_hangup(group: Group) -> None:
    """Reload the keys of a group at SIGHUP; an open group ends at it, as before."""
    if group.stats()["is_closed_group"]:
        # A thread of its own: the signal may have interrupted a call of the group.
        signal.signal(
            signal.SIGHUP, lambda *_: threading.Thread(target=_reload, args=(group,)).start()
        )


def _reload(group: Group) -> None:
    try:
        group.reload_keys()
    except RingcastError as error:
        log.warning("the keys stay as they are: %s", error)
    else:
        log.info("the keys were read anew: %s", group.stats()["key_ids"])
