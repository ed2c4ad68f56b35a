"""Why a sender waits, in words and as data: whom the stack waits for, and who that is to blame."""

from __future__ import annotations

from ringcast.core.address import Address
from ringcast.core.stack import Stack
from ringcast.runtime.outgoing import Run

OWN_FAULT = (
    "this member's own application does not take messages: iterate the group, or join with"
    " receive=False"
)


def waits_for(stack: Stack) -> list[Address]:
    """The members without whom nothing more can be sent, as far as a layer knows any."""
    members: dict[Address, None] = {}
    for part in stack.parts:
        named: tuple[Address, ...] = getattr(part, "waits_for", ())
        members.update(dict.fromkeys(named))
    return list(members)


def names(stack: Stack, members: list[Address]) -> list[str]:
    """What people call these members."""
    view = stack.view
    return [str(member) if view is None else view.name(member) for member in members]


def explain(stack: Stack, run: Run, is_ready: bool) -> str:
    """Why a run found no room; `is_ready` says that the own application has something to take."""
    sent = f"{run.sent} of {len(run.payloads)} messages were sent; " if run.sent else ""
    waited_for = waits_for(stack)
    if is_ready and stack.env.me in waited_for:
        return sent + OWN_FAULT
    if waited_for:
        who = ", ".join(names(stack, waited_for))
        return f"{sent}the window is full, and {who} did not take what was sent"
    return f"{sent}there was no room: a view is being made, or the receiver is silent"
