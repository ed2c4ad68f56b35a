"""Outcomes as text for people, and as plain data for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ringcast_bench.figures import Figures, ratio
from ringcast_bench.goals import Judgement, best_peer, judge
from ringcast_bench.run import ScenarioOutcome
from ringcast_bench.scenarios import Goal

Cell = Callable[[Figures], str]


def text_of(outcome: ScenarioOutcome) -> str:
    """A scenario: one line per row, and remarks on them."""
    columns, compared = _columns(outcome), _compared(outcome)
    lines = [["", *columns, *(f"× {name}" for name in compared)]]
    for row in outcome.scenario.rows:
        sample = outcome.summary(row.who)
        if sample.figures:
            ratios = _ratios(outcome, row.who).values()
            mark = " *" if sample.is_disturbed else ""
            cells = [cell(sample.figures) for cell in columns.values()]
            lines.append([row.who + mark, *cells, *map(_ratio, ratios)])
    title = f"{outcome.scenario.name}: {outcome.scenario.title}"
    return "\n".join([title, *align(lines), *_remarks(outcome)])


def goals_text(outcomes: Sequence[ScenarioOutcome]) -> str:
    """All goals: what they are, what was measured, and whether they are reached."""
    lines = [["goal", "of", "compared with", "measured", "aimed at", "reached"]]
    for outcome in outcomes:
        for judgement in judge(outcome):
            lines.append(_judgement_cells(judgement))
    return "\n".join(align(lines, left=3)) if len(lines) > 1 else ""


def data_of(outcome: ScenarioOutcome) -> dict[str, object]:
    """A scenario as plain data: each run, the medians, the ratios, the goals."""
    scenario = outcome.scenario
    rows: dict[str, object] = {}
    for row in scenario.rows:
        if row.who in outcome.missing:
            rows[row.who] = {"kind": row.kind, "missing": outcome.missing[row.who]}
            continue
        summary = outcome.summary(row.who)
        rows[row.who] = {
            "kind": row.kind,
            "median": summary.figures,
            "ratios": _ratios(outcome, row.who),
            "disturbed": summary.is_disturbed,
            "failed": summary.failed,
            "runs": [vars(sample) for sample in outcome.samples.get(row.who, ())],
        }
    goals = [_judgement_data(judgement) for judgement in judge(outcome)]
    return {"title": scenario.title, "rows": rows, "goals": goals}


# Columns -----------------------------------------------------------------------------------------


def _compared(outcome: ScenarioOutcome) -> dict[str, str]:
    """The rows that every row is compared with, by the head of the column."""
    rows = outcome.scenario.rows
    raw = next((row.who for row in rows if row.kind == "raw"), "")
    names = {row.who for row in rows}
    base = next((goal.against for goal in outcome.scenario.goals if goal.against in names), "")
    known = {"raw": raw, "best peer": best_peer(outcome, "rate")}
    if base and not raw:  # A scenario that compares rows with one of them, as with no loss.
        known[base] = base
    return {name: who for name, who in known.items() if who}


def _ratios(outcome: ScenarioOutcome, who: str) -> dict[str, float | None]:
    """The main figure of a row as a multiple of others'."""
    figure = MAIN_FIGURES.get(outcome.scenario.play, "rate")
    ours = outcome.summary(who).figures
    return {
        name: ratio(ours, outcome.summary(other).figures, figure)
        for name, other in _compared(outcome).items()
    }


MAIN_FIGURES = {"ping": "p50", "join": "join", "idle": "cpu_percent", "form": "seconds"}


def _columns(outcome: ScenarioOutcome) -> dict[str, Cell]:
    """What is shown of a row: every figure that any of them has."""
    known = {name for who in outcome.samples for name in outcome.summary(who).figures}
    return {head: cell for head, (figure, cell) in COLUMNS.items() if figure in known}


def _cell(figure: str, scale: float, form: str) -> tuple[str, Cell]:
    def show(figures: Figures) -> str:
        return format(figures[figure] / scale, form) if figure in figures else "-"

    return figure, show


COLUMNS: dict[str, tuple[str, Cell]] = {
    "messages/s": _cell("rate", 1, ",.0f"),
    "MB/s": _cell("bytes", 1e6, ",.0f"),
    "p50 µs": _cell("p50", 1e-6, ",.0f"),
    "p99 µs": _cell("p99", 1e-6, ",.0f"),
    "join ms": _cell("join", 1e-3, ",.0f"),
    "× link": _cell("used", 1, ".2f"),
    "× after down": _cell("used_down", 1, ".2f"),
    "× after up": _cell("used_up", 1, ".2f"),
    "late/s": _cell("late", 1, ",.0f"),
    "Jain": _cell("jain", 1, ".3f"),
    "× other": _cell("share", 1, ".2f"),
    "overhead": _cell("overhead", 1, ",.2f"),
    "views": _cell("views", 1, ".0f"),
    "suspicions": _cell("suspicions", 1, ".0f"),
    "CPU %": _cell("cpu_percent", 1, ".2f"),
    "member MB": _cell("rss", 1e6, ",.0f"),
    "sender µs": _cell("sender_cpu_us", 1, ",.2f"),
    "receiver µs": _cell("receiver_cpu_us", 1, ",.2f"),
    "sender MB": _cell("sender_rss", 1e6, ",.0f"),
    "receiver MB": _cell("receiver_rss", 1e6, ",.0f"),
}
"""Heads of columns, with the figure below and how it is shown; µs of CPU are for a message."""


def _remarks(outcome: ScenarioOutcome) -> Iterator[str]:
    for row in outcome.scenario.rows:
        if row.who in outcome.missing:
            yield f"  left out: {row.who} ({outcome.missing[row.who]})"
            continue
        sample = outcome.summary(row.who)
        if sample.failed:
            yield f"  failed and not counted: {row.who} ({sample.failed})"
        elif sample.is_disturbed:
            yield f"  * disturbed: others used {sample.other_cores:.2f} cores while {row.who} ran"


# Goals -------------------------------------------------------------------------------------------


def _judgement_cells(judgement: Judgement) -> list[str]:
    goal = judgement.goal
    words = {True: "yes", False: "NO", None: "not measured"}[judgement.is_reached]
    least = "" if goal.least is None else f"≥ {_amount(goal, goal.least)}"
    most = "" if goal.most is None else f"≤ {_amount(goal, goal.most)}"
    return [
        judgement.scenario,
        goal.who + (f", {goal.figure}" if goal.figure != "rate" else ""),
        judgement.against or "-",
        "-" if judgement.value is None else _amount(goal, judgement.value),
        f"{least}{most}",
        words + (" *" if judgement.is_disturbed else ""),
    ]


def _amount(goal: Goal, value: float) -> str:
    """A ratio, or a figure that counts by itself with its unit."""
    scale, unit = (1.0, " ×") if goal.against else UNITS.get(goal.figure, (1.0, ""))
    return f"{value / scale:.2f}{unit}"


UNITS = {"rss": (1e6, " MB"), "cpu_percent": (1.0, " %")}


def _judgement_data(judgement: Judgement) -> dict[str, object]:
    goal = judgement.goal
    return {
        "who": goal.who,
        "figure": goal.figure,
        "against": judgement.against,
        "value": judgement.value,
        "least": goal.least,
        "most": goal.most,
        "reached": judgement.is_reached,
        "disturbed": judgement.is_disturbed,
    }


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def align(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Columns of equal width; the first ones begin at the left, the others end at the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
