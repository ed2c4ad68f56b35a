"""Why a sender waits, as text and as data: the members that it waits for, and the reason."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from ringcast.core.model.address import Address
from ringcast.core.stack.stack import Stack
from ringcast.errors import Timeout
from ringcast.runtime.member.incoming import Incoming
from ringcast.runtime.member.outgoing import Outgoing, PendingSend

OWN_APPLICATION = (
    "this member's own application does not take messages: iterate the group, or join with"
    " receive=False"
)

MAKING_VIEW = "a view is being made"

WARN_SECONDS = 1.0
"""Seconds that a sender waits for its own application before that is said aloud."""

log = logging.getLogger("ringcast")


class OwnApplicationWarning:
    """Says aloud, once, that a sender waits for its own application."""

    def __init__(self, stack: Stack, incoming: Incoming, outgoing: Outgoing) -> None:
        self._stack, self._incoming, self._outgoing = stack, incoming, outgoing
        self._is_said = False

    def consider(self, now: float) -> None:
        """A sender waits, and nothing moves."""
        if self._is_said or now - self._incoming.visited < WARN_SECONDS:
            return
        waited = now - self._outgoing.runs[0].since
        own = self._incoming.ready and self._stack.env.me in self._stack.waits_for
        if waited >= WARN_SECONDS and own:
            self._is_said = True
            log.warning("a send in the group %s waits: %s", self._stack.group, OWN_APPLICATION)


def names(stack: Stack, members: list[Address]) -> list[str]:
    """What people call these members."""
    view = stack.view
    return [str(member) if view is None else view.name(member) for member in members]


def waited_for(stack: Stack, runs: Iterable[PendingSend]) -> list[Address]:
    """The members that these sends wait for, to the group and to single members."""
    single = [run.to for run in runs if run.to is not None]
    return list(dict.fromkeys([*stack.waits_for, *single]))


def blocked_by(stack: Stack, runs: Collection[PendingSend]) -> str:
    """Why these sends wait, where that is not a member; else empty."""
    if not runs:
        return ""
    return stack.block_text or ("" if waited_for(stack, runs) else MAKING_VIEW)


def timeout(stack: Stack, run: PendingSend, is_ready: bool, what: str) -> Timeout:
    """What a caller gets whose run found no room in time: how much of it was sent, and why no more.

    is_ready: the own application has something to take.
    """
    waited_for = stack.waits_for if run.to is None else [run.to]
    who = names(stack, waited_for)
    if stack.block_text:
        why = stack.block_text
    elif is_ready and stack.env.me in waited_for:
        why = OWN_APPLICATION
    elif who:
        why = f"there is no room, since {', '.join(who)} did not take what was sent before"
    else:
        why = f"there is no room: {MAKING_VIEW}"
    sent = f"; {run.sent} of {len(run.payloads)} messages were sent" if run.sent else ""
    return Timeout(f"{what}: {why}{sent}", sent=run.sent, waits_for=tuple(who))
