"""What a member says of itself as plain data, for `stats()` and `ringcast status`."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, TypedDict, cast

from ringcast.core.stack.stack import Stack
from ringcast.runtime.member.blocked_senders import blocked_by, names, waited_for

if TYPE_CHECKING:
    from ringcast.runtime.member.member import Member


class PeerStats(TypedDict):
    """One member of the view."""

    address: str
    name: str
    endpoint: str


class RoleStats(TypedDict, total=False):
    """What the protocols of the stack add, each under its role."""

    services: dict[str, object]
    quorum: dict[str, object]
    order: dict[str, object]
    compress: dict[str, object]
    large: dict[str, object]
    fragment: dict[str, object]
    flow: dict[str, object]
    multicast: dict[str, object]
    unicast: dict[str, object]
    wire: dict[str, object]
    stability: dict[str, object]
    slow: dict[str, object]
    failure: dict[str, object]
    membership: dict[str, object]


class Stats(RoleStats):
    """What `Group.stats()` returns, as plain data that JSON can carry."""

    me: str
    group: str
    name: str
    endpoint: str
    view: str | None
    members: list[str]
    peers: list[PeerStats]
    closed: str | None
    """Why the member is out of the group; None while it is in."""
    is_closed_group: bool
    """Whether the group has a key, or its members have TLS certificates."""
    key_ids: list[str]
    """The ids of its keys: the first one seals, all of them open."""
    peer_key_ids: dict[str, str]
    """The id of the key by which each of the others has sealed last, by its address."""
    counters: dict[str, int]
    transport: dict[str, int]
    kernel: dict[str, bool]
    """What the transport gets from the kernel: segmentation offload and the like."""
    application: dict[str, int]
    blocked_senders: list[float]
    """For how many seconds each blocked caller has waited."""
    waits_for: list[str]
    """The names of the members that a blocked sender waits for."""
    blocked_by: str
    """Why blocked senders wait, where that is not a member: a view is made, a majority lacks."""


def member_stats(member: Member, now: float) -> Stats:
    """Counters and window marks; the caller holds the member's lock."""
    stack, incoming = member.stack, member.incoming
    told = {
        **stack.snapshot().plain(),
        **member.security.facts(),
        "peer_key_ids": member.security.peer_key_ids(stack.view or ()),
        "peers": _peers(stack),
        "group": member.group,
        "name": member.peer.name,
        "endpoint": member.peer.endpoint,
        "transport": member.transport.stats(),
        "kernel": member.transport.offers(),
        "application": {
            **member.figures(),
            "aside_bytes": incoming.aside,
            **incoming.counters,
        },
        "blocked_senders": [round(now - run.since, 3) for run in member.outgoing.runs],
        "waits_for": names(stack, waited_for(stack, member.outgoing.runs)),
        "blocked_by": blocked_by(stack, member.outgoing.runs),
    }
    return cast(Stats, told)  # The keys of the parts are known when the stack is built.


class ViewRecord(TypedDict):
    """One view that a member has installed, and the reason for it."""

    at: float
    """Seconds since 1970."""
    number: int
    members: list[str]
    joined: list[str]
    left: list[str]
    why: str
    """What happened to whom: "bob crashed", "eve joined"."""


class WindowStats(TypedDict):
    """The send window of a member."""

    messages: int
    capacity: int
    bytes: int
    max_bytes: int


class MemberReport(Stats):
    """What a member tells one that watches the group."""

    pid: int
    uptime: float
    unread_bytes: int
    """Bytes that wait for the application."""
    window: WindowStats
    history: list[ViewRecord]


def member_report(member: Member, now: float) -> MemberReport:
    """The figures of a member for one that watches; the caller holds the member's lock."""
    stats = member_stats(member, now)
    sent = cast(dict[str, int], stats.get("multicast", {}).get("sent", {}))
    spec = member.spec["multicast"] if "multicast" in member.spec else None  # noqa: SIM401
    window: WindowStats = {
        "messages": sent.get("high", 0) - sent.get("low", 0),
        "capacity": getattr(spec, "capacity", 0),
        "bytes": sent.get("nbytes", 0),
        "max_bytes": getattr(spec, "max_bytes", 0),
    }
    return {
        **stats,
        "pid": os.getpid(),
        "uptime": now - member.began,
        "unread_bytes": member.stack.unread_bytes,
        "window": window,
        "history": list(member.history),
    }


def packed(report: MemberReport) -> bytes:
    """A report as it travels."""
    return zlib.compress(json.dumps(report).encode(), 1)


def _peers(stack: Stack) -> list[PeerStats]:
    """Every member of the view, and where it is."""
    peers = () if stack.view is None else stack.view.peers
    return [
        {"address": str(peer.address), "name": peer.name, "endpoint": peer.endpoint}
        for peer in peers
    ]
