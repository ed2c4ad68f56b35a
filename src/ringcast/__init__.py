"""Reliable, ordered group messaging without a broker.

from ringcast import sync

with sync.join("hello", name="ann") as group:
    group.send(b"hello")
    print(group.receive().payload)
"""

import logging
import warnings
from importlib.metadata import PackageNotFoundError, version

from ringcast import errors, presets, sync
from ringcast.core.model import events
from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message
from ringcast.core.model.events import (
    Event,
    Expelled,
    Merged,
    Outpaced,
    Progress,
    QuorumLost,
    QuorumRegained,
    Skipped,
    Stateless,
    Suspected,
    Undelivered,
    ViewChange,
)
from ringcast.core.model.view import View, ViewId
from ringcast.errors import (
    Closed,
    ConfigError,
    JoinFailed,
    LocalError,
    NotMember,
    RemoteError,
    RingcastError,
    StateFailed,
    Timeout,
    TooLarge,
)
from ringcast.job_rows import RowDeduplicator, rows
from ringcast.ringbuffer.ring import RingBuffer
from ringcast.runtime.api.aio import Group, join
from ringcast.runtime.member.stats import Stats
from ringcast.runtime.ops.logs import show_log
from ringcast.services.replies import Outcome, Replies, Reply
from ringcast.spec import StackSpec

try:
    __version__ = version("ringcast")
except PackageNotFoundError:
    __version__ = "0.0.0+source"  # It is run from its source, not installed.

logging.getLogger("ringcast").addHandler(logging.NullHandler())

__all__ = [
    "Address",
    "Batch",
    "Closed",
    "ConfigError",
    "Event",
    "Expelled",
    "Group",
    "JoinFailed",
    "LocalError",
    "Merged",
    "Message",
    "NotMember",
    "Outcome",
    "Outpaced",
    "Progress",
    "QuorumLost",
    "QuorumRegained",
    "RemoteError",
    "Replies",
    "Reply",
    "RingBuffer",
    "RingcastError",
    "RowDeduplicator",
    "Skipped",
    "StackSpec",
    "StateFailed",
    "Stateless",
    "Stats",
    "Suspected",
    "Timeout",
    "TooLarge",
    "Undelivered",
    "View",
    "ViewChange",
    "ViewId",
    "__version__",
    "errors",
    "events",
    "join",
    "presets",
    "rows",
    "show_log",
    "sync",
]


def __getattr__(name: str) -> object:
    """Names of the last version, with a warning."""
    if name == "Feed":
        warnings.warn(
            "ringcast.Feed is now ringcast.RowDeduplicator", DeprecationWarning, stacklevel=2
        )
        return RowDeduplicator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
