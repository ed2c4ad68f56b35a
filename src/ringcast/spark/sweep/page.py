"""The page of a sweep: which settings are best, how each of them acts, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.spark.report import charts
from ringcast.spark.report.charts import Look, Span
from ringcast.spark.report.compare import Cloud, Point, ScatterAxis, Steps, scatter, step_chart
from ringcast.spark.report.page import Fact, PageSection, folded, listed, page, table
from ringcast.spark.report.svg import COLOURS
from ringcast.spark.sweep import text
from ringcast.spark.sweep.figures import FIGURES, shown
from ringcast.spark.sweep.grid import Axis, Candidate
from ringcast.spark.sweep.lines import Line
from ringcast.spark.sweep.run import Finished, Sweep

ROWS_MAX = 1_000
SPANS_MAX = 2_000
ACTING = ("p99", "throughput", "window_bytes")
"""The figures that are drawn over the values of each setting."""


def sweep_page(sweep: Sweep) -> str:
    """The page as HTML, in one piece."""
    word, _, rest = text.verdict(sweep).partition(" ")
    verdict = ("found" if word == "BEST" else "nothing", f"{word.lower()} {rest}")
    heading = list(text.heading(sweep.grid))
    return page("Sweep", verdict, list(_facts(sweep)), list(_sections(sweep)), "; ".join(heading))


def _facts(sweep: Sweep) -> Iterator[Fact]:
    judgement = sweep.judgement
    yield Fact(f"{len(sweep.finished):,}", "simulations")
    yield Fact(f"{len(sweep.wrong):,}", "did not end as they should")
    yield Fact(f"{len(judgement.within):,} of {len(sweep.grid.candidates):,}", "within the bounds")
    yield Fact(f"{sweep.ratio_to_ideal:.0%}", f"of the ideal on {sweep.cores} cores")


def _sections(sweep: Sweep) -> Iterator[PageSection]:
    if sweep.judgement.best is not None:
        yield _best(sweep, sweep.judgement.best)
    yield _clouds(sweep)
    for axis in sweep.grid.settings:
        if axis.varies:
            yield _acting(sweep, axis)
    yield _table(sweep)
    if sweep.wrong:
        yield _wrong(sweep)
    yield _cores(sweep)


def _best(sweep: Sweep, best: Candidate) -> PageSection:
    lines = sweep.judgement.of(best)
    heads = ["network and load", *text.COLUMNS]
    rows = [
        [sweep.grid.scene_label(line.scene) or "all", *text.figures(line).values()]
        for line in lines
    ]
    body = table(heads, rows, numbers=range(1, len(heads)))
    body += str(folded("the whole stack, as TOML", best.spec.to_toml().splitlines()))
    body += listed([(name, FIGURES[name].about) for name in text.COLUMNS])
    label = sweep.grid.candidate_label(best)
    return PageSection("The best settings", f"{label}. Of all seeds, the worst counts.", body)


def _clouds(sweep: Sweep) -> PageSection:
    """Latency against throughput; a colour for each network and load."""
    grid = sweep.grid
    clouds = []
    for number, scene in enumerate(grid.scenes[:COLOURS]):
        own = [line for line in sweep.judgement.lines if line.scene_number == number]
        points = [point for line in own if (point := _point(sweep, line)) is not None]
        clouds.append(Cloud(grid.scene_label(scene) or "all", points))
    across, up = (ScatterAxis(name, FIGURES[name].unit) for name in ("throughput", "p99"))
    body = scatter("99 % latency against throughput", across, up, clouds)
    left = len(grid.scenes) - COLOURS
    more = f" The first {COLOURS} networks and loads are shown." if left > 0 else ""
    reading = f"A spot for each of the settings; faint ones are not within the bounds.{more}"
    return PageSection("Latency against throughput", reading, body)


def _point(sweep: Sweep, line: Line) -> Point | None:
    x, y = line.figures["throughput"], line.figures["p99"]
    if x is None or y is None:
        return None
    told = f"{FIGURES['throughput'].unit(x)} per second, p99 {FIGURES['p99'].unit(y)}"
    return Point(x, y, f"{sweep.grid.candidate_label(line.candidate)}: {told}", line.is_good)


def _acting(sweep: Sweep, axis: Axis) -> PageSection:
    """How one setting acts, with all others as in the best, or as in the first candidate."""
    grid = sweep.grid
    base = sweep.judgement.best or grid.candidates[0]
    along = [_beside(sweep, base, axis.name, value) for value in axis.values]
    body = ""
    for name in ACTING:
        lines = []
        for number, scene in enumerate(grid.scenes[:COLOURS]):
            values = [_figure(sweep, candidate, number, name) for candidate in along]
            lines.append(Steps(grid.scene_label(scene) or "all", values))
        bounds = [bound.limit for bound in grid.bounds if bound.figure.name == name]
        look = Look(f"{name} for each value of {axis.name}", FIGURES[name].unit)
        labels = [shown(value) for value in axis.values]
        body += f'<p class="quiet">{name}: {FIGURES[name].about}</p>'
        body += step_chart(look, axis.name, labels, lines, min(bounds, default=None))
    others = dict(base.settings) | {axis.name: None}
    rest = ", ".join(f"{k} {shown(v)}" for k, v in others.items() if k != axis.name)
    reading = f"With {rest}." if rest else "A line for each network and load."
    return PageSection(f"How {axis.name} acts", reading, body)


def _beside(sweep: Sweep, base: Candidate, name: str, value: object) -> Candidate | None:
    """The candidate that differs from `base` in one setting only, if there is such a stack."""
    wanted = dict(base.settings) | {name: value}
    return next(
        (
            candidate
            for candidate in sweep.grid.candidates
            if candidate.stack is base.stack and dict(candidate.settings) == wanted
        ),
        None,
    )


def _figure(sweep: Sweep, candidate: Candidate | None, scene: int, name: str) -> float | None:
    own = [] if candidate is None else sweep.judgement.of(candidate)
    return next((line.figures[name] for line in own if line.scene_number == scene), None)


def _table(sweep: Sweep) -> PageSection:
    lines = sweep.judgement.lines
    names = [*text.names(sweep.grid), *text.COLUMNS, ""]
    rows = [text.cells(sweep, line) for line in lines[:ROWS_MAX]]
    body = table(names, rows, numbers=range(len(names) - 1))
    reading = f"{len(rows):,} of {len(lines):,} lines; of all seeds, the worst counts."
    return PageSection("All settings in all networks and loads", reading, body)


def _wrong(sweep: Sweep) -> PageSection:
    rows = [
        [one.result.status, folded(one.result.problem or "?", [sweep.grid.command(one.run)])]
        for one in sweep.wrong[:ROWS_MAX]
    ]
    reading = "Open one for the command that repeats it."
    return PageSection("What did not end as it should", reading, table(["status", "problem"], rows))


def _cores(sweep: Sweep) -> PageSection:
    """Which worker ran which simulation when."""
    shown_ = sorted(sweep.finished, key=lambda one: one.result.began_at)[:SPANS_MAX]
    workers = sorted({one.result.worker for one in shown_})
    start = min(one.result.began_at for one in shown_)
    end = max(one.result.began_at + one.result.real_seconds for one in shown_) - start
    spans = [_span(sweep, one, workers.index(one.result.worker), start) for one in shown_]
    look = Look("Which worker ran which simulation when")
    body = charts.timeline(look, workers, spans, max(end, 1e-6))
    return PageSection("How the cores were used", text.efficiency(sweep) + ".", body)


def _span(sweep: Sweep, one: Finished, row: int, start: float) -> Span:
    began = one.result.began_at - start
    what = (
        sweep.grid.scene_label(one.run.scene),
        sweep.grid.candidate_label(one.run.candidate),
        f"seed {one.run.seed}",
        f"{one.result.cpu_seconds:.2f} CPU s",
        one.result.status,
    )
    hint = "; ".join(part for part in what if part)
    return Span(row, began, began + one.result.real_seconds, "", one.run.scene_number, hint)
