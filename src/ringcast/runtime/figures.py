"""What a member says of itself as plain data, for `stats()` and `ringcast status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.core.stack import Stack
from ringcast.runtime.blame import names

if TYPE_CHECKING:
    from ringcast.runtime.member import Member


def figures(member: Member, now: float) -> dict[str, object]:
    """Counters and window marks; the caller holds the member's lock."""
    stack, incoming = member.stack, member.incoming
    return {
        **stack.snapshot(),
        "peers": _peers(stack),
        "group": member.group,
        "name": member.peer.name,
        "endpoint": member.peer.endpoint,
        "transport": member.transport.stats(),
        "application": {"aside_bytes": incoming.aside, **incoming.counters},
        "blocked_senders": [round(now - run.since, 3) for run in member.outgoing.runs],
        "waits_for": names(stack, stack.waits_for),
    }


def _peers(stack: Stack) -> list[dict[str, str]]:
    """Every member of the view, and where it is."""
    peers = () if stack.view is None else stack.view.peers
    return [
        {"address": str(peer.address), "name": peer.name, "endpoint": peer.endpoint}
        for peer in peers
    ]
