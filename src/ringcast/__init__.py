"""Reliable, ordered group messaging without a broker."""

import logging

from ringcast import errors, presets, sync
from ringcast.core import events
from ringcast.core.address import Address
from ringcast.core.batch import Batch, Message
from ringcast.core.events import Event, Expelled, Merged, Skipped, Suspected, ViewChange
from ringcast.core.view import View, ViewId
from ringcast.errors import (
    Closed,
    ConfigError,
    JoinFailed,
    LocalError,
    NotMember,
    RemoteError,
    RingcastError,
    Timeout,
    TooLarge,
)
from ringcast.runtime.group import Group, join
from ringcast.spec import StackSpec

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
    "RemoteError",
    "RingcastError",
    "Skipped",
    "StackSpec",
    "Suspected",
    "Timeout",
    "TooLarge",
    "View",
    "ViewChange",
    "ViewId",
    "errors",
    "events",
    "join",
    "presets",
    "sync",
]
