"""What callers hand in: looked at before it gets anywhere, so that a mistake is a sentence for the
caller and nothing else happens."""

from __future__ import annotations

import errno
import math
import reprlib
from collections.abc import Iterable
from typing import TypeVar

from ringcast.core.model.address import Address
from ringcast.errors import ConfigError, LocalError
from ringcast.spec import StackSpec

NAME_MAX = 255
"""Bytes of a member's name: it is in every view, and views have to fit datagrams."""
Handler = TypeVar("Handler")
UNBOUNDED_SECONDS = 1e8
"""Seconds (three years) from which on a wait has no bound: no clock of the system counts them."""


def checked_timeout(
    timeout: float | None, error: type[ConfigError | LocalError] = LocalError
) -> float | None:
    """Seconds that can be waited for; None for as long as it takes. Raises `error`."""
    if timeout is None:
        return None
    if not _is_number(timeout):
        raise error(f"timeout is {timeout!r}: give seconds, or None to wait as long as it takes")
    return None if timeout >= UNBOUNDED_SECONDS else max(timeout, 0.0)


def checked_target(to: Address) -> Address:
    """One member to send to. Raises TypeError for several, and for what is none."""
    if not isinstance(to, int):
        raise TypeError(f"to is {to!r}: give the Address of one member, as in group.view.members")
    return to


def checked_targets(to: Address | Iterable[Address]) -> list[Address]:
    """One member or several, to ask. Raises TypeError for what is none."""
    if isinstance(to, int):
        return [to]
    if isinstance(to, str | bytes) or not isinstance(to, Iterable):
        raise TypeError(f"to is {to!r}: give an Address, or a list of them")
    return [checked_target(member) for member in to]


def checked_handler(handler: Handler) -> Handler:
    """A handler that answers calls. Raises LocalError."""
    if not callable(handler):
        raise LocalError(f"on_call is {handler!r}: give a function")
    return handler


def check_join(group: str, spec: StackSpec | None, name: str, backlog_bytes: int) -> None:
    """Raises ConfigError for what no member can be made of."""
    _check_text("group", group)
    if not group:
        raise ConfigError("group is empty: give the name that all its members use")
    if spec is not None and not isinstance(spec, StackSpec):
        raise ConfigError(f"spec is {reprlib.repr(spec)}: give a StackSpec, say presets.lan()")
    _check_text("name", name)
    size = len(name.encode())
    if size > NAME_MAX:
        raise ConfigError(f"name has {size:,} bytes: give at most {NAME_MAX}")
    if not (_is_number(backlog_bytes) and backlog_bytes >= 0):
        raise ConfigError(f"backlog_bytes is {backlog_bytes!r}: give bytes, 0 or more")


def check_switches(**switches: object) -> None:
    """Raises ConfigError for one that is neither True nor False: "no" would count as True."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is {reprlib.repr(value)}: give True or False")


def cannot_start(error: OSError) -> ConfigError:
    """What the system says when it has nothing left for a member."""
    hint = ": raise the limit, see `ulimit -n`" if error.errno == errno.EMFILE else ""
    return ConfigError(f"a member cannot be started ({error.strerror}){hint}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise ConfigError(f"{what} is {text!r}: give a text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{what} is {text!r}, which is not Unicode: give another") from None
