"""An audit in words and as plain data: verdict, figures, violations with their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringcast.spark.audit.run import Report
from ringcast.trace.violations import CAUSES, Violation

Rows = list[dict[str, Any]]
"""Rows of a trace that show a violation."""

ROWS_SHOWN = 5
"""How many rows of a violation are printed."""
VIOLATIONS_SHOWN = 3
"""How many violations of one cause are printed."""

FIGURES = (
    *("sent_messages", "delivered_messages", "delivered_bytes", "skipped_messages"),
    *("requested_messages", "resent_messages", "retransmission_ratio", "stalled_seconds"),
    *("latency_p50", "latency_p90", "latency_p99", "latency_p999", "latency_max"),
    *("delivered_before_sent_messages", "window_mean", "window_max", "views"),
)
"""The figures of a whole run. Latencies are those of deliveries to other members."""


@dataclass(frozen=True)
class Stall:
    """How long a member had to wait for another."""

    member: str
    waited_for: str
    seconds: float


def figures(report: Report) -> dict[str, float | None]:
    """The figures of the whole run; latencies in microseconds, None if unknown."""
    measures = report.measures
    whole = {f.figure: f.value for f in measures.figures if f[1:4] == (None, None, None)}
    seconds = (measures.clock.end - measures.clock.start) / 1_000_000
    return {
        "seconds": seconds,
        "members": len({row.member for row in report.installs}),
        **{name: whole.get(name, _absent(name)) for name in FIGURES},
    }


def _absent(figure: str) -> float | None:
    return None if figure.startswith("latency") else 0.0


def stalls(report: Report) -> list[Stall]:
    """Who waited for whom, the longest first."""
    found = [
        Stall(_name(report, f.member), _name(report, f.peer), f.value)
        for f in report.measures.of("stalled_seconds")
        if f.member is not None and f.at is None
    ]
    return sorted(found, key=lambda stall: -stall.seconds)


def table(report: Report) -> dict[str, str]:
    """The figures as rows of a table that people read."""
    of = {name: value or 0.0 for name, value in figures(report).items()}
    worst = next(iter(stalls(report)), None)
    told = worst is not None and worst.seconds >= 0.05
    cause = f", most of it {worst.member} for {worst.waited_for}" if worst and told else ""
    rate = of["delivered_messages"] / of["seconds"] if of["seconds"] else 0.0
    return {
        "members": f"{of['members']:,.0f}, in {of['views']:,.0f} views",
        "sent": f"{of['sent_messages']:,.0f} messages in {of['seconds']:.1f} s",
        "delivered": f"{of['delivered_messages']:,.0f}, {rate:,.0f} per second",
        "latency": _latency(figures(report)),
        "asked for": f"{of['requested_messages']:,.0f} messages",
        "sent again": f"{of['resent_messages']:,.0f}, {of['retransmission_ratio']:.1%} of all sent",
        "given up": f"{of['skipped_messages']:,.0f}",
        "stalled": f"{of['stalled_seconds']:.1f} s of all senders' time{cause}",
        "windows": f"{of['window_max']:,.0f} messages in the fullest, {of['window_mean']:,.0f} on"
        " average",
        **_doubts(report),
    }


def _latency(of: dict[str, float | None]) -> str:
    """The latencies between members; a member's deliveries of its own messages don't count."""
    words = {"median": "p50", "99 %": "p99", "99.9 %": "p999", "longest": "max"}
    known = {word: of[f"latency_{name}"] for word, name in words.items()}
    told = [f"{word} {value / 1_000:,.1f} ms" for word, value in known.items() if value is not None]
    early = of["delivered_before_sent_messages"]
    if early:
        told.append(f"not known of {early:,.0f} deliveries that are stamped before their sending")
    return ", ".join(told) or "no deliveries to another member"


def _doubts(report: Report) -> dict[str, str]:
    """Of whom a verdict says less than of the others."""
    return {
        why: f"{', '.join(_name(report, member) for member in members)}: {meaning}"
        for why, members, meaning in report.doubts
    }


def verdict(report: Report) -> str:
    """The verdict as a line."""
    if not report.counts:
        return f"CLEAN: every guarantee held{reservation(report)}"
    told = ", ".join(f"{name} ({count:,})" for name, count in report.counts.items())
    return f"BROKEN: {told}"


def reservation(report: Report) -> str:
    """What restricts a clean verdict, if anything does."""
    members = {member for row in report.installs for member in row.members or ()}
    known = len(members) - len(report.untraced)
    if known == len(members):
        return ""
    return f", as far as the traces of {known} of {len(members)} members show"


def violations(report: Report) -> Iterator[str]:
    """The violations as lines: what explains them, then by cause, the first with their rows."""
    yield from (f"Look here first: {sentence}" for sentence in report.root_causes)
    shown = defaultdict[str, list[tuple[Violation, Rows]]](list)
    for violation, rows in report.shown:
        shown[violation.cause].append((violation, rows))
    for cause, count in report.causes.items():
        guarantee, sentence = CAUSES[cause]
        meaning = sentence.format(messages="messages", peer="a member")
        yield f"{guarantee}: {meaning} ({count:,} {'times' if count > 1 else 'time'})"
        first = shown[cause][:VIOLATIONS_SHOWN]
        for violation, rows in first:
            yield f"  {violation}"
            yield from (f"    {line}" for line in _row_lines(rows))
        if count > len(first) > 0:
            yield f"  and {count - len(first):,} more"


def _row_lines(rows: Rows) -> Iterator[str]:
    for row in rows[:ROWS_SHOWN]:
        known = {name: value for name, value in row.items() if value is not None}
        yield " ".join(f"{name}={value}" for name, value in known.items())
    if len(rows) > ROWS_SHOWN:
        yield f"and {len(rows) - ROWS_SHOWN} rows more"


def plain(report: Report) -> dict[str, Any]:
    """All of it as plain data."""
    return {
        "verdict": report.verdict,
        "root_causes": report.root_causes,
        "counts": report.counts,
        "causes": report.causes,
        "untraced": [_name(report, member) for member in report.untraced],
        "unfinished": [_name(report, member) for member in report.unfinished],
        "figures": figures(report),
        "stalls": [vars(stall) for stall in stalls(report)],
        "violations": [_plain(violation, rows) for violation, rows in report.shown],
    }


def _plain(violation: Violation, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "guarantee": violation.guarantee,
        "cause": violation.cause,
        "what": violation.what,
        "member": violation.member,
        "view": violation.view,
        "sender": violation.sender,
        "first": violation.first,
        "last": violation.last,
        "rows": rows,
    }


def _name(report: Report, address: int | None) -> str:
    if address is None:
        return "a view change"
    return report.name(address)
