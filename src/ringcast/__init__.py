"""Reliable, ordered group messaging without a broker."""

import logging

from ringcast import errors, presets, sync
from ringcast.core import events
from ringcast.core.address import Address
from ringcast.core.batch import Batch, Message
from ringcast.core.events import (
    Event,
    Expelled,
    Merged,
    Outpaced,
    Progress,
    Skipped,
    Suspected,
    Undelivered,
    ViewChange,
)
from ringcast.core.view import View, ViewId
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
from ringcast.feed import Feed, rows
from ringcast.runtime.group import Group, join
from ringcast.services.replies import Outcome, Replies, Reply
from ringcast.spec import StackSpec

logging.getLogger("ringcast").addHandler(logging.NullHandler())

__all__ = [
    "Address",
    "Batch",
    "Closed",
    "ConfigError",
    "Event",
    "Expelled",
    "Feed",
    "Group",
    "JoinFailed",
    "LocalError",
    "Merged",
    "Message",
    "NotMember",
    "Outcome",
    "Outpaced",
    "Progress",
    "RemoteError",
    "Replies",
    "Reply",
    "RingcastError",
    "Skipped",
    "StackSpec",
    "StateFailed",
    "Suspected",
    "Timeout",
    "TooLarge",
    "Undelivered",
    "View",
    "ViewChange",
    "ViewId",
    "errors",
    "events",
    "join",
    "presets",
    "rows",
    "sync",
]
