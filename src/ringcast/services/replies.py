"""The outcome of a call: a reply of each member that was asked, which says what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from ringcast.core.model.address import Address


class Outcome(Enum):
    """What became of a call at one member."""

    VALUE = 0
    """Its handler has answered."""
    ERROR = 1
    """Its handler has failed, or could not be asked; `error` says why."""
    NO_HANDLER = 2
    """It answers no calls."""
    GONE = 3
    """It crashed, or left the group, before it answered."""
    TIMED_OUT = 4
    """It did not answer in time."""
    BUSY = 5
    """It answers too many calls already, and has not begun this one: try again later."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one member has answered, or why it has not."""

    outcome: Outcome
    payload: bytes = b""
    """The answer; empty unless the outcome is VALUE."""
    error: str = ""
    """Why there is no answer, in words; empty when there is one."""

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.outcome is Outcome.VALUE


class Replies(Mapping[Address, Reply]):
    """The replies by member, in the order of arrival. Never changes.

    A member that was no longer waited for is not in it.
    """

    __slots__ = ("_replies",)

    def __init__(self, replies: Mapping[Address, Reply]) -> None:
        self._replies = dict(replies)

    @property
    def answers(self) -> dict[Address, bytes]:
        """The answers of the members that have answered."""
        return {member: reply.payload for member, reply in self._replies.items() if reply.ok}

    @property
    def ok(self) -> bool:
        """Whether all of these members have answered."""
        return all(reply.ok for reply in self._replies.values())

    def __getitem__(self, member: Address) -> Reply:
        return self._replies[member]

    def __iter__(self) -> Iterator[Address]:
        return iter(self._replies)

    def __len__(self) -> int:
        return len(self._replies)

    def __repr__(self) -> str:
        kinds = (f"{member}: {reply.outcome.name}" for member, reply in self._replies.items())
        return f"Replies({', '.join(kinds)})"


GONE = Reply(Outcome.GONE, error="it crashed or left before its answer came")
TIMED_OUT = Reply(Outcome.TIMED_OUT, error="it did not answer in time")
NO_HANDLER = Reply(Outcome.NO_HANDLER, error="it answers no calls: join with on_call=… there")
NOT_YET = Reply(Outcome.ERROR, error="it waits for the group's state, and answers no calls yet")
