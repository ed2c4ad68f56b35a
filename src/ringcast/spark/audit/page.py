"""The page of an audit: the verdict, what broke it, and plots of how the run went."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ringcast.spark.audit.figures import SHOWN_MAX
from ringcast.spark.audit.page_data import Findings, PlotData
from ringcast.spark.report import charts
from ringcast.spark.report.charts import Bar, Look, Series
from ringcast.spark.report.page import Fact, PageSection, folded, listed, page, table
from ringcast.spark.report.scale import microseconds, nbytes, number, seconds
from ringcast.spark.report.svg import COLOURS
from ringcast.trace.violations import CAUSES, GUARANTEES, Violation

VIOLATIONS_MAX = 200

PERCENTILES = {
    "latency_p50": "median",
    "latency_p90": "90 %",
    "latency_p99": "99 %",
    "latency_p999": "99.9 %",
    "latency_max": "largest",
}


def audit_page(findings: Findings) -> str:
    """The page as HTML, in one piece."""
    look = PlotData(findings)
    counts = findings.counts
    broken = ", ".join(f"{name} ({number(count)})" for name, count in counts.items())
    verdict = ("broken", broken) if counts else ("clean", "every guarantee was kept")
    start = datetime.fromtimestamp(look.clock.start / 1e6, UTC)
    below = f"{start:%Y-%m-%d %H:%M:%S} UTC, {seconds(look.end)} long"
    sections = [
        *_root_causes(findings),
        *_causes(findings),
        *_doubts(findings, look),
        *_plots(findings, look),
        *_violations(findings, look),
    ]
    return page("Audit of a group", verdict, list(_facts(look)), sections, below)


def _facts(look: PlotData) -> Iterator[Fact]:
    yield Fact(str(len(look.members)), "members")
    yield Fact(number(look.total("views")), "views")
    yield Fact(number(look.total("sent_messages")), "messages sent")
    yield Fact(number(look.total("delivered_messages")), "deliveries")
    if look.has("latency_p50"):
        yield Fact(microseconds(look.total("latency_p50")), "latency to others, median")
        yield Fact(microseconds(look.total("latency_p99")), "latency to others, 99 %")
    yield Fact(f"{look.total('retransmission_ratio'):.2%}", "sent again")
    yield Fact(seconds(look.total("stalled_seconds")), "senders stalled")


def _plots(findings: Findings, look: PlotData) -> Iterator[PageSection]:
    yield _views(look)
    yield _latency(look)
    yield _pairs(look)
    yield _throughput(look)
    yield _repairs(look)
    yield _stalls(look)
    yield _windows(look, findings.capacity)


def _root_causes(findings: Findings) -> Iterator[PageSection]:
    if findings.root_causes:
        reading = "These explain many violations at once: look here first."
        body = listed([(str(n), cause) for n, cause in enumerate(findings.root_causes, start=1)])
        yield PageSection("Root causes", reading, body)


def _causes(findings: Findings) -> Iterator[PageSection]:
    rows = []
    for cause, count in findings.causes.items():
        guarantee, sentence = CAUSES[cause]
        meaning = sentence.format(messages="messages", peer="a member")
        rows.append([guarantee, meaning, number(count)])
    if rows:
        body = table(["guarantee", "what happened", "times"], rows, numbers=[2])
        reading = "By cause. The rows that show them are at the end of the page."
        yield PageSection("What was broken", reading, body)


def _violations(findings: Findings, look: PlotData) -> Iterator[PageSection]:
    told = findings.violations[:VIOLATIONS_MAX]
    if not told:
        return
    rows = [
        [
            violation.guarantee,
            look.name(violation.member),
            str(violation.view),
            "" if violation.sender is None else look.name(violation.sender),
            folded(_what(violation, look), [_row(row, look) for row in shown]),
        ]
        for violation, shown in told
    ]
    total = number(sum(findings.counts.values()))
    reading = f"{len(told)} of {total}. Open one to see the rows of the trace around it."
    body = table(["guarantee", "member", "view", "sender", "what"], rows)
    body += listed([(name, GUARANTEES[name]) for name in findings.counts])
    yield PageSection("Violations, one by one", reading, body)


def _doubts(findings: Findings, look: PlotData) -> Iterator[PageSection]:
    told = [
        (why, f"{', '.join(map(look.name, members))} ({meaning})")
        for why, members, meaning in findings.doubts
    ]
    if told:
        reading = "Of these members the verdict says less than of the others."
        yield PageSection("Who cannot be judged", reading, listed(told))


def _what(violation: Violation, look: PlotData) -> str:
    """The sentence of a violation, with names instead of addresses."""
    if violation.peer is None:
        return violation.what
    sentence = CAUSES[violation.cause].sentence
    return sentence.format(messages=violation.messages, peer=look.name(violation.peer))


def _row(row: dict[str, Any], look: PlotData) -> str:
    """A row of a trace, as far as it tells something."""
    at = (row["at"] - look.clock.start) / 1e6
    parts = [f"{at:12.6f} s", f"{look.name(row['member']):12}", f"{row['kind']:9}"]
    if row["seqno"] is not None:
        last = row["seqno"] + row["count"] - 1
        parts.append(str(last) if row["count"] == 1 else f"{row['seqno']} to {last}")
    parts += [
        f"{k} {row[k]}"
        for k in ("pos", "place", "low", "delivered", "high")
        if row.get(k) is not None
    ]
    if row["members"]:
        parts.append(", ".join(look.name(member) for member in row["members"]))
    return "  ".join(parts)


def _views(look: PlotData) -> PageSection:
    shown = look.members[:SHOWN_MAX]
    names = [look.name(member) for member in shown]
    plot = Look("Which member was in which view, over time")
    body = charts.timeline(plot, names, list(look.spans(shown)), look.end)
    reading = "Each member's time in each view; the same colour is the same view."
    return PageSection("Views", reading, body)


def _latency(look: PlotData) -> PageSection:
    over_time = list(PERCENTILES.items())[:3]
    series = [Series(text, look.over_time(figure)) for figure, text in over_time]
    plot = Look("Latency over time", microseconds, log=True)
    body = charts.line_chart(plot, series, look.end, look.marks())
    worst = {figure: look.worst(figure) for figure in PERCENTILES}
    if not look.has("latency_p50"):
        return PageSection("Latency", "No message was delivered to another member.", "")
    rows = [["all", *(microseconds(look.total(figure)) for figure in PERCENTILES)]]
    for member in look.members[:SHOWN_MAX]:
        values = [worst[figure].get(member) for figure in PERCENTILES]
        told = ("" if value is None else microseconds(value) for value in values)
        rows.append([look.name(member), *told])
    heads = ["by receiver, from its slowest sender", *PERCENTILES.values()]
    body += table(heads, rows, numbers=range(1, len(heads)))
    reading = "From sending to delivery by other members, all together; dashed lines are new views."
    return PageSection("Latency", reading, body)


def _pairs(look: PlotData) -> PageSection:
    place = {member: row for row, member in enumerate(look.members[:SHOWN_MAX])}
    values = {
        (place[member], place[peer]): value
        for (member, peer), value in look.pairs("latency_p99").items()
        if member in place and peer in place
    }
    plot = Look("99 % latency by receiver and sender", microseconds)
    body = charts.matrix(plot, [look.name(member) for member in place], values)
    reading = "Within this time a receiver (row) delivered 99 % of a sender's messages (column)."
    return PageSection("Latency by receiver and sender", reading, body)


def _throughput(look: PlotData) -> PageSection:
    series = look.rates("delivered_messages_per_second")
    plot = Look("Messages delivered per second, by member")
    body = charts.line_chart(plot, series, look.end, look.marks())
    size = nbytes(look.total("delivered_bytes"))
    reading = f"Messages that each member's application took per second; {size} in all."
    return PageSection("Throughput", reading, body)


def _repairs(look: PlotData) -> PageSection:
    kinds = {"resent": "sent again", "requested": "asked for", "skipped": "given up"}
    series = [
        Series(text, look.over_time(f"{kind}_messages_per_second"))
        for kind, text in kinds.items()
        if look.total(f"{kind}_messages")
    ]
    if not series:
        return PageSection("Repairs and losses", "Nothing had to be sent again.", "")
    plot = Look("Messages asked for, sent again and given up, per second")
    body = charts.column_chart(plot, series, look.end, look.marks())
    ratios = look.worst("retransmission_ratio")
    shown = [member for member in look.members if member in ratios][:SHOWN_MAX]
    bars = [Bar(look.name(member), ratios[member]) for member in shown]
    body += charts.bar_chart(Look("Share sent again, by sender", lambda v: f"{v:.2%}"), bars)
    reading = "Messages per second; below, each sender's share of messages that it sent again."
    return PageSection("Repairs and losses", reading, body)


def _stalls(look: PlotData) -> PageSection:
    stalls = sorted(look.pairs("stalled_seconds").items(), key=lambda item: -item[1])
    bars = [
        Bar(f"{look.name(who)} waited for {_cause(cause, look)}", value)
        for (who, cause), value in stalls[:SHOWN_MAX]
        if value > 0
    ]
    if not bars:
        return PageSection("Stalls", "No sender had to wait for room in its window.", "")
    body = charts.bar_chart(Look("How long senders waited, and for whom", seconds), bars)
    reading = "How long a sender had to wait, and for whose acks, or for a new view."
    return PageSection("Stalls", reading, body)


def _cause(peer: int | None, look: PlotData) -> str:
    return "a view change" if peer is None else look.name(peer)


def _windows(look: PlotData, capacity: int | None) -> PageSection:
    series = look.by_member("window_max")
    if not series:
        return PageSection("Windows", "The trace has no samples of windows.", "")
    if capacity is not None:
        bound = [(0.0, float(capacity)), (look.end, float(capacity))]
        series = [*series[: COLOURS - 1], Series("capacity", bound)]
    plot = Look("Messages in each member's windows, at most")
    body = charts.line_chart(plot, series, look.end, look.marks())
    reading = "The most messages between low and high that a window of each member held."
    return PageSection("Windows", reading, body)
