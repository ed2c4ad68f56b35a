"""The page of an audit: whole, self-contained, safe, and with what one wants to see on it."""

import random
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast.errors import ConfigError
from ringcast.spark.audit.figure_tables import Clock
from ringcast.spark.audit.figures import Figure, Measures
from ringcast.spark.audit.page import audit_page
from ringcast.spark.audit.page_data import Findings
from ringcast.spark.report import charts
from ringcast.spark.report.charts import Bar, Look, Series
from ringcast.spark.report.scale import (
    Scale,
    from_zero,
    logarithmic,
    microseconds,
    nbytes,
    number,
    seconds,
)
from ringcast.trace.schema import Row
from ringcast.trace.table import write_rows
from ringcast.trace.violations import Violation
from tests.unit.trace.histories import good_history
from tests.unit.trace.spoils import spoil

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page, and sees whether what is opened is closed and nothing is fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not {"src", "href"} & {name for name, _ in attrs}
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def findings(*violations: Violation, figures: tuple[Figure, ...] = ()) -> Findings:
    """Two members in one view, one of them with an evil name."""
    view = Row(1, 1, 1, None, "view", at=0, members=(1, 2), names=("anna", "<b>&bert"))
    clock = Clock(0, 10_000_000, 1_000_000)
    counts = {violation.guarantee: 1 for violation in violations}
    shown = [(violation, [SHOWN]) for violation in violations]
    return Findings(counts, shown, Measures(clock, list(figures)), [view, view._replace(member=2)])


SHOWN = {
    **dict.fromkeys(("pos", "low", "delivered", "high", "members")),
    **{"member": 2, "kind": "delivered", "seqno": 3, "count": 4, "at": 1_500_000, "pos": 2},
}


def test_a_page_shows_verdict_violations_and_plots(spark: SparkSession, tmp_path: Path) -> None:
    spoilt = spoil(good_history(4), random.Random(4), "gap")
    assert spoilt is not None
    write_rows(tmp_path / "a.parquet", spoilt.rows)
    report = rs.audit(rs.read_trace(spark, tmp_path), capacity=100)
    path = report.write_html(tmp_path / "report.html")
    page = Page(path.read_text())
    assert page.tags.count("svg") >= 7
    assert page.tags.count("details") == len(report.found)
    for words in ("broken", "gap (1)", "passed over", "Views", "Latency", "Throughput", "Stalls"):
        assert words in page.text
    assert all(name in page.text for name in report.names.values())
    with pytest.raises(ConfigError, match="No report can be written"):
        report.write_html(tmp_path / "nowhere" / "report.html")


def test_names_cannot_break_the_page() -> None:
    figure = Figure("stalled_seconds", 2, 1, None, 3.0)
    page = Page(audit_page(findings(Violation("gap", 2, 1, 1, 1, None, 3, 4), figures=(figure,))))
    assert "<b>&bert waited for anna" in page.text
    assert "3 to 6  pos 2" in page.text


def test_an_empty_run_still_has_a_page() -> None:
    page = Page(audit_page(Findings({}, [], Measures(Clock(0, 1, 1), []), [])))
    assert "every guarantee was kept" in page.text
    assert "No sender had to wait" in page.text


def test_who_cannot_be_judged_is_named() -> None:
    page = Page(audit_page(replace(findings(), doubts=[("no trace", [1, 2], "who knows")])))
    assert "no trace : anna, <b>&bert (who knows)" in page.text
    assert "Who cannot be judged" not in audit_page(findings())


def test_the_harmed_member_of_a_purge_is_called_by_its_name() -> None:
    page = Page(audit_page(findings(Violation("purged-before", 1, 1, 1, 1, 2, 3, 4))))
    assert "messages 3 to 4 purged before <b>&bert delivered them" in page.text


def test_lines_break_where_there_is_nothing() -> None:
    line = Series("a", [(0, 1.0), (1, None), (2, 3.0)])
    assert charts.line_chart(Look("x"), [line], 2).count("<path") == 2


def test_columns_stand_on_each_other() -> None:
    both = [Series("a", [(0, 1.0), (1, 2.0)]), Series("b", [(0, 3.0), (1, None)])]
    assert charts.column_chart(Look("x"), both, 2).count("<title>") == 3


def test_bars_are_as_long_as_their_values() -> None:
    drawn = charts.bar_chart(Look("x"), [Bar("a", 4), Bar("b", 2), Bar("c", 0)])
    widths = [float(part.split('"')[0]) for part in drawn.split('width="')[1:]]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)
    assert widths[2] == 1


def test_scales_have_round_ticks() -> None:
    assert from_zero([3.7], 0, 100).ticks(4) == [0, 1, 2, 3, 4]
    assert from_zero([], 0, 100).ticks(4)[0] == 0
    assert logarithmic([30, 4_000], 0, 100).ticks() == [10, 100, 1_000, 10_000]
    assert Scale(0, 10, 100, 200)(5) == 150
    assert Scale(0, 10, 100, 200)(50) == 200
    assert Scale(1, 100, 0, 10, log=True)(10) == pytest.approx(5)


def test_numbers_are_written_for_people() -> None:
    assert [number(v) for v in (0, 0.25, 7, 35_200, 1.2e6)] == ["0", "0.25", "7", "35.2 k", "1.2 M"]
    assert [microseconds(v) for v in (3, 1_500, 2e6)] == ["3 µs", "1.5 ms", "2 s"]
    assert [seconds(v) for v in (0, 0.002, 15)] == ["0", "2 ms", "15 s"]
    assert [nbytes(v) for v in (12, 4_000)] == ["12 B", "4 kB"]
