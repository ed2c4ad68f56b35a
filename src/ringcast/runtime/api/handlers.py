"""Handlers: what an application gives to answer calls and requests for its state, and their fate.

They run in the application's own loop or thread, when it asks for its next event and has been
given all that came before. What they raise goes to the caller, and to the log.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ringcast.core.model.batch import Message
from ringcast.errors import ConfigError, Timeout
from ringcast.runtime.member.services import ServiceOptions
from ringcast.runtime.member.state_transfer import Chunk, StateValue
from ringcast.services.calls import CALLS_MAX
from ringcast.services.replies import Outcome, Reply

CALL_TIMEOUT = 30.0
"""Seconds that a call waits for answers unless told otherwise."""
STATE_TIMEOUT = 60.0
"""Seconds that a newcomer waits for the state unless told otherwise."""
HANDLERS_MAX = 1_024
"""Asynchronous handlers that run at once; a call on top of that is answered with BUSY."""

Value = Chunk | None
OnCall = Callable[[Message], Value | Awaitable[Value]]
OnStateRequest = Callable[[], StateValue | Awaitable[StateValue]]
SyncOnCall = Callable[[Message], Value]
SyncOnStateRequest = Callable[[], StateValue]

Loaded = TypeVar("Loaded")

CANCELLED = Reply(Outcome.ERROR, error="the handler was cancelled")
TOO_MANY = Reply(Outcome.BUSY, error=f"{HANDLERS_MAX:,} calls are being answered there already")


def not_made(timeout: float | None) -> Timeout:
    """What a caller gets that found no room for its call in time."""
    return Timeout(
        f"the call was not made within {timeout or 0:g} seconds: {CALLS_MAX:,} calls of this member"
        " wait for answers"
    )


log = logging.getLogger("ringcast")


def reply_of(value: object) -> Reply:
    """The answer that a handler has returned."""
    if value is None:
        return Reply(Outcome.VALUE)
    if isinstance(value, bytes):
        return Reply(Outcome.VALUE, value)
    if isinstance(value, memoryview):
        return Reply(Outcome.VALUE, value.tobytes())
    if isinstance(value, bytearray):
        return Reply(Outcome.VALUE, bytes(value))
    return failure(TypeError(f"a handler answers with bytes, not {type(value).__name__}"))


def failure(error: BaseException) -> Reply:
    """The answer when a handler has failed."""
    log.warning("a handler of calls failed: %s", error, exc_info=error)
    return Reply(Outcome.ERROR, error=f"{type(error).__name__}: {error}")


def log_state_failure(error: BaseException) -> None:
    """The state could not be given."""
    log.warning("a state could not be given: %s", error, exc_info=error)


def services_of(
    on_call: object, on_state_request: object, state: bool, receive: bool, is_sync: bool
) -> ServiceOptions:
    """What a member does besides sending and receiving. Raises ConfigError."""
    handlers = {"on_call": on_call, "on_state_request": on_state_request}
    for name, handler in handlers.items():
        if handler is None:
            continue
        if not callable(handler):
            raise ConfigError(f"{name} is {handler!r}: give a function")
        if is_sync and inspect.iscoroutinefunction(handler):
            raise ConfigError(f"{name} is asynchronous: join with ringcast.join, or give another")
        if not receive:
            raise ConfigError(
                f"{name} needs a member that asks for events: leave receive=False out"
            )
    if state and not receive:
        raise ConfigError("state=True needs a member that receives: leave receive=False out")
    return ServiceOptions(on_call is not None, on_state_request is not None, state)
