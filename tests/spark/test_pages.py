"""The pages in a browser: what is on them is there, and nothing is wider than a telephone."""

import json
import os
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from ringcast.spark.audit.figure_tables import Clock
from ringcast.spark.audit.figures import Figure, Measures
from ringcast.spark.audit.page import audit_page
from ringcast.spark.audit.page_data import Findings
from ringcast.spark.follow.page import follow_page
from ringcast.spark.report.charts import Look
from ringcast.spark.report.compare import Cloud, Point, ScatterAxis, Steps, scatter, step_chart
from ringcast.spark.report.page import Fact, PageSection, page
from ringcast.trace.follow.audit_row import VIEW, VIOLATION, AuditRow
from ringcast.trace.schema import Row
from ringcast.trace.violations import Violation

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
TELEPHONE, DESK = 390, 1280
"""Widths in pixels."""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium here: install that package"),
]

LOOK = """
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const shown = one => getComputedStyle(one).display !== "none";
    const told = {
      over: root.scrollWidth - root.clientWidth,
      heads: [...page.querySelectorAll("h2")].map(one => one.textContent),
      marks: [...page.querySelectorAll(".moment text")].map(one => one.textContent),
      empty: [...page.querySelectorAll("svg")].filter(svg => {
        const all = svg.getBoundingClientRect();
        const right = [...svg.querySelectorAll("*")].map(one => one.getBoundingClientRect().right);
        return Math.max(...right) < all.left + all.width * 2 / 3;
      }).map(svg => svg.getAttribute("aria-label")),
      small: [...page.querySelectorAll("svg text")].filter(
        one => one.getBoundingClientRect().height < 8).length,
      footer: page.querySelector("footer").textContent,
    };
    const key = page.querySelector(".keys input");
    if (key) {
      const curve = key.closest(".plot").querySelector("svg .c0");
      told.before = shown(curve);
      key.click();
      told.after = shown(curve);
    }
    return told;
  });
  const told = document.createElement("output");
  told.textContent = JSON.stringify(found);
  document.body.replaceChildren(told);
});
"""


def look_at(text: str, place: Path) -> list[dict[str, Any]]:
    """What a browser finds on a page of the width of a telephone, and of a desk."""
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{escape(text)}"></iframe>'
        for width in (TELEPHONE, DESK)
    )
    whole = f'<!doctype html><meta charset="utf-8"><script>{LOOK}</script><body>{frames}</body>'
    (place / "frames.html").write_text(whole)
    command = [
        *(str(BROWSER), "--headless", "--disable-gpu", "--no-first-run", "--dump-dom"),
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        *("--disable-dev-shm-usage", "--virtual-time-budget=10000"),
        *(f"--user-data-dir={place / 'profile'}", (place / "frames.html").as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert "<output>" in done.stdout, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(
        unescape(done.stdout.partition("<output>")[2].partition("</output>")[0])
    )
    return found


def audited() -> str:
    """Three members; carol joins and is gone without a word."""
    members = {1: "anna", 2: "bert-with-quite-a-long-name", 3: "carol"}
    installs = [
        Row(
            *(member, view, 1, None, "view"),
            at=at,
            members=there,
            names=tuple(members[one] for one in there),
        )
        for view, at, there in ((1, 0, (1, 2)), (2, 3_000_000, (1, 2, 3)), (3, 7_000_000, (1, 2)))
        for member in there
    ]
    clock = Clock(0, 10_000_000, 1_000_000)
    names = ("latency_p50", "latency_p90", "latency_p99", "latency_p999", "latency_max")
    figures = [Figure(name, None, None, None, 500.0) for name in names]
    figures += [Figure("latency_p99", 1, 2, None, 400.0), Figure("latency_p99", 2, 1, None, 300.0)]
    for at in range(0, 10_000_000, 1_000_000):
        figures += [Figure(name, None, None, at, 300.0 + at / 1e5) for name in names[:3]]
        for member in (1, 2):
            figures.append(
                Figure("delivered_messages_per_second", member, None, at, 100.0 * member)
            )
            figures.append(Figure("window_max", member, None, at, 10.0 * member))
    violation = Violation("gap", 2, 1, 1, 1, None, 3, 4)
    counts, causes = {violation.guarantee: 1}, {violation.cause: 1}
    shown: list[tuple[Violation, list[dict[str, Any]]]] = [(violation, [])]
    measures = Measures(clock, figures)
    return audit_page(Findings(counts, shown, measures, installs, causes=causes))


def followed() -> str:
    """A page of the continuous audit."""
    row = AuditRow(VIOLATION, 1, 1, "messages 3 to 4 passed over", 2, "bert", guarantee="gap")
    view = AuditRow(
        *(VIEW, 1, 1, "1 violations"), rows=9, violations=1, members=2, unfinished=0, began=0,
        ended=9_000_000, sent_messages=5, delivered_messages=9, resent_messages=0,
    )  # fmt: skip
    rows = {VIOLATION: [row._asdict()], VIEW: [view._asdict()]}
    return follow_page("a/very/long/" * 20, "BROKEN: 1 violation", rows, refresh=False)


def compared() -> str:
    """The plots of a sweep."""
    clouds = [Cloud(name, [Point(1.0, 2.0, "a"), Point(9.0, 3.0, "b")]) for name in ("lan", "wan")]
    lines = [Steps(name, [1.0, 2.0, None]) for name in ("lan", "wan")]
    plots = [
        scatter("one against the other", ScatterAxis("x"), ScatterAxis("y"), clouds),
        step_chart(Look("by capacity"), "capacity", ["64", "128", "256"], lines, bound=1.5),
    ]
    sections = [PageSection(f"Plot {n}", "How to read it.", plot) for n, plot in enumerate(plots)]
    return page("Sweep", ("found", "a setting"), [Fact("2", "runs")], sections)


@pytest.mark.parametrize("made", [audited, followed, compared])
def test_a_page_fits_a_telephone_and_a_desk(made: Any, tmp_path: Path) -> None:
    narrow, wide = look_at(made(), tmp_path)
    for found in (narrow, wide):
        assert found["over"] <= 0, "it is wider than its window"
        assert found["heads"]
        assert found["empty"] == [], "a plot leaves a third of its room empty"
        assert found["small"] == 0, "letters are too small to read"
        assert found["footer"].startswith("Written by ringcast")
    if made is audited:
        assert "view 2: carol joined" in narrow["marks"]
        assert "view 3: carol gone" in narrow["marks"]
    if made is not followed:
        assert (narrow["before"], narrow["after"]) == (True, False), "a line cannot be switched off"
