"""A row of the live view: what it shows of one member."""

from __future__ import annotations

from typing import TypedDict


class Figures(TypedDict):
    """What a member says of itself. Rates are per second."""

    role: str
    pid: int
    uptime: float
    view: int
    messages_out: float
    messages_in: float
    bytes_out: float
    bytes_in: float
    window_percent: float
    window_messages: int
    unread_bytes: int
    """Bytes that wait for its application, or were put aside for it."""
    resent: float
    requested: float
    congestion_window: int
    """Bytes that may be in flight, by congestion control; 0 where there is none."""
    lag: int
    """Messages of the group that its application has not taken; for a recorder, not on disk."""
    recorded: int
    """Messages that a recorder has on disk; -1 for other members."""
    recorder_lag_ms: int
    """How old messages are when a recorder has them on disk."""
    waits_for: list[str]
    """The members that its sends wait for."""
    blocked_by: str
    """Why its sends wait, where that is not a member."""
    waits_seconds: float
    suspects: list[str]
    drops: dict[str, int]
    """Drops by reason, since the member began."""
    rising_drops: dict[str, float]
    """Drops that rise, per second."""


class MemberRow(Figures):
    """One member, as the live view shows it."""

    name: str
    address: str
    endpoint: str
    age: float
    """Seconds since its last report; -1 when there was none."""
    silent_seconds: float
    """For how long its answer is overdue; 0 for a member that answers."""
    round_trip_ms: float


def empty_row(name: str, address: str, endpoint: str) -> MemberRow:
    """A member that has not answered."""
    return {
        "name": name,
        "address": address,
        "endpoint": endpoint,
        "role": "",
        "pid": 0,
        "uptime": 0.0,
        "view": 0,
        "age": -1.0,
        "silent_seconds": 0.0,
        "round_trip_ms": 0.0,
        "messages_out": 0.0,
        "messages_in": 0.0,
        "bytes_out": 0.0,
        "bytes_in": 0.0,
        "window_percent": 0.0,
        "window_messages": 0,
        "unread_bytes": 0,
        "resent": 0.0,
        "requested": 0.0,
        "congestion_window": 0,
        "lag": 0,
        "recorded": -1,
        "recorder_lag_ms": 0,
        "waits_for": [],
        "blocked_by": "",
        "waits_seconds": 0.0,
        "suspects": [],
        "drops": {},
        "rising_drops": {},
    }
