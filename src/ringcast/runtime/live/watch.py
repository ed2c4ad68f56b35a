"""Watches a group from one member: asks all members, and turns their reports into rates.

What others report is checked by `reports`, so nothing here can fail on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypedDict

from ringcast.core.model.address import Address
from ringcast.runtime.api.base import GroupBase
from ringcast.runtime.live.reports import read_report
from ringcast.runtime.live.rows import Figures, MemberRow, empty_row
from ringcast.runtime.live.troubles import Trouble, troubles_of
from ringcast.runtime.member.stats import MemberReport, ViewRecord, WindowStats
from ringcast.runtime.ops.drops import is_alarm
from ringcast.services.inquiries import Received

HISTORY_VIEWS = 20
"""The latest views that are shown."""
SILENT_SECONDS = 1.0
"""A member whose answer is overdue for longer is shown as silent."""


class Snapshot(TypedDict):
    """The whole group at one moment."""

    group: str
    watched_by: str
    at: float
    is_closed_group: bool
    view: int
    members: list[MemberRow]
    troubles: list[Trouble]
    """What needs attention, the most urgent first."""
    history: list[ViewRecord]
    """The latest view last."""


class _Sample(NamedTuple):
    at: float
    report: MemberReport


class GroupWatch:
    """The group as seen from one member; `look` once a second or so."""

    def __init__(self, group: GroupBase, clock: Callable[[], float] = time.monotonic) -> None:
        self._group, self._clock = group, clock
        self._service = group._service
        self._samples: dict[Address, tuple[_Sample, _Sample]] = {}
        """The last two reports of each member."""
        self._unanswered: dict[Address, float] = {}
        """When each member was asked the first question that it has not answered."""

    def look(self) -> Snapshot:
        """What the members have said until now; asks them anew for the next look."""
        reports = self._service.inquire()
        now, view = self._clock(), self._group.view
        for address, received in reports.items():
            self._keep(address, received)
        self._samples = {a: kept for a, kept in self._samples.items() if a in view}
        self._unanswered = {
            member: now
            if member in reports and reports[member].at >= self._unanswered.get(member, now)
            else self._unanswered.get(member, now)
            for member in view
        }
        rows = [
            self._row(peer.address, peer.name, peer.endpoint, reports.get(peer.address), now)
            for peer in view.peers
        ]
        reported = {address: kept[1].report for address, kept in self._samples.items()}
        own = reported[self._group.me]
        highs = {str(a): _number(_multicast(r).get("sent"), "high") for a, r in reported.items()}
        for peer, row in zip(view.peers, rows, strict=True):
            if peer.address in reported:
                row["lag"] = _lag(reported[peer.address], highs)
        return {
            "group": own["group"],
            "watched_by": self._group.name,
            "at": time.time(),
            "is_closed_group": own["is_closed_group"],
            "view": view.id.number,
            "members": rows,
            "troubles": troubles_of(rows, own["group"], self._group.name, view.id.number),
            "history": _joined_histories(reported.values()),
        }

    def _keep(self, address: Address, received: Received) -> None:
        known = self._samples.get(address)
        if known is not None and known[1].at == received.at:
            return
        try:
            sample = _Sample(received.at, read_report(received.content))
        except ValueError:
            return  # Of another version, or made up.
        self._samples[address] = (known[1] if known else sample, sample)

    def _row(
        self, address: Address, name: str, endpoint: str, received: Received | None, now: float
    ) -> MemberRow:
        samples, row = self._samples.get(address), empty_row(name, str(address), endpoint)
        overdue = now - self._unanswered[address]
        row["silent_seconds"] = overdue if overdue > SILENT_SECONDS else 0.0
        if samples is None:
            return row
        row = {**row, **_figures(*samples)}
        row["age"] = now - samples[1].at
        row["round_trip_ms"] = 0.0 if received is None else received.round_trip * 1_000
        return row


def _figures(before: _Sample, after: _Sample) -> Figures:
    """What two reports of a member say; rates are those between them."""
    report, seconds = after.report, max(after.at - before.at, 0.001)

    def rate(new: int, old: int) -> float:
        return max(0.0, (new - old) / seconds)

    rates = [rate(*pair) for pair in zip(_totals(report), _totals(before.report), strict=True)]
    drops, dropped_before = _drops(report), _drops(before.report)
    blocked = report["blocked_senders"]
    return {
        "role": str(report.get("membership", {}).get("role", "")),
        "pid": int(report["pid"]),
        "uptime": float(report["uptime"]),
        "view": int((report["view"] or "0").partition("@")[0]),
        "messages_out": rates[0],
        "messages_in": rates[1],
        "bytes_out": rates[2],
        "bytes_in": rates[3],
        "resent": rates[4],
        "requested": rates[5],
        "window_percent": _window_percent(report["window"]),
        "window_messages": int(report["window"]["messages"]),
        "unread_bytes": int(report["unread_bytes"]) + report["application"].get("aside_bytes", 0),
        "congestion_window": _number(_multicast(report), "congestion_window"),
        "lag": 0,
        "recorded": int(report["application"].get("recorded", -1)),
        "recorder_lag_ms": int(report["application"].get("recorder_lag_ms", 0)),
        "waits_for": [str(name) for name in report["waits_for"]] if blocked else [],
        "blocked_by": report["blocked_by"] if blocked else "",
        "waits_seconds": float(max(blocked, default=0.0)),
        "suspects": _suspects(report),
        "drops": drops,
        "rising_drops": {
            reason: rate(count, dropped_before.get(reason, 0))
            for reason, count in drops.items()
            if count > dropped_before.get(reason, 0) and is_alarm(reason, misses=rates[5] > 0)
        },
    }


def _joined_histories(reports: Iterable[MemberReport]) -> list[ViewRecord]:
    """The views that any of the members remembers, each as the one tells it that knows most."""
    best: dict[tuple[int, tuple[str, ...]], tuple[tuple[bool, ...], ViewRecord]] = {}
    for report in reports:
        for record in report["history"]:
            key = record["number"], tuple(record["members"])
            rank = (
                report["name"] not in record["joined"],  # Its own first view tells it little.
                "evicted" in record["why"],
                "crashed" in record["why"],
            )
            if key not in best or rank > best[key][0]:
                best[key] = rank, record
    return [best[key][1] for key in sorted(best)][-HISTORY_VIEWS:]


def _lag(report: MemberReport, highs: Mapping[str, int]) -> int:
    """How many messages the other members have sent that this one has not delivered."""
    windows = _maps(_multicast(report).get("windows"))
    return sum(
        max(0, highs[sender] - _number(window, "delivered"))
        for sender, window in windows.items()
        if sender in highs
    )


def _multicast(report: MemberReport) -> Mapping[str, object]:
    return _maps(report.get("multicast"))


def _totals(report: MemberReport) -> tuple[int, int, int, int, int, int]:
    """Messages out and in, bytes out and in, messages resent and requested, since the beginning."""
    multicast = _multicast(report)
    windows = multicast.get("windows")
    taken = sum(_number(w, "delivered") for w in _maps(windows).values())
    transport, counters = report["transport"], report["counters"]
    return (
        _number(multicast.get("sent"), "high"),
        taken,
        transport.get("sent_bytes", 0),
        transport.get("received_bytes", 0),
        counters.get("resent", 0),
        counters.get("requested", 0),
    )


def _drops(report: MemberReport) -> dict[str, int]:
    both = {**report["counters"], **report["transport"]}
    return {
        name.removeprefix("dropped_"): count
        for name, count in both.items()
        if name.startswith("dropped_") and count
    }


def _window_percent(window: WindowStats) -> float:
    messages = window["messages"] / window["capacity"] if window["capacity"] else 0.0
    nbytes = window["bytes"] / window["max_bytes"] if window["max_bytes"] else 0.0
    return 100.0 * max(messages, nbytes)


def _suspects(report: MemberReport) -> list[str]:
    names = {peer["address"]: peer["name"] for peer in report["peers"]}
    found = report.get("failure", {}).get("suspected", [])
    return [names.get(str(a), str(a)) for a in found] if isinstance(found, list) else []


def _maps(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _number(value: object, key: str) -> int:
    found = _maps(value).get(key, 0)
    return found if isinstance(found, int) else 0
