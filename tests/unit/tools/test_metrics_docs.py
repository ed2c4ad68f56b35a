"""What is made from the register of counters is current, and names metrics that exist."""

import json
import re
from pathlib import Path

import pytest

from ringcast.core.stack.counters import declared
from ringcast.runtime.ops.metrics import described
from tools.metrics_docs import DASHBOARD, PAGE, dashboard, page

DEPLOY = Path(__file__).resolve().parents[3] / "examples" / "deploy"


def is_metric(name: str) -> bool:
    if name in described():
        return True
    counter = name.removesuffix("_total")
    ends = (counter.removeprefix("ringcast_transport_"), counter.removeprefix("ringcast_"))
    return name.endswith("_total") and any(declared(end) is not None for end in ends)


def test_the_page_and_the_dashboard_are_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tools.metrics_docs"
    assert DASHBOARD.read_text() == dashboard(), "run: python -m tools.metrics_docs"


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "prometheus-alerts.yml"])
def test_dashboard_and_alerts_name_metrics_that_exist(file: str) -> None:
    text = (DEPLOY / file).read_text()
    named = set(re.findall(r"\bringcast_\w+\b(?!\()", text)) - {"ringcast_"}
    assert len(named) >= 6
    assert sorted(name for name in named if not is_metric(name)) == []


def test_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}
    assert len(places) == len(panels) == len({panel["id"] for panel in panels})


def test_the_notebook_is_one() -> None:
    notebook = json.loads((DEPLOY / "audit.ipynb").read_text())
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), "cell", "exec")


def test_commands_in_the_manifests_are_commands() -> None:
    """Every option that a manifest gives to `ringcast node` exists."""
    from ringcast.cli.completion import words

    known = {option for option, _ in words("node").options}
    for file in ("compose.yaml", "kubernetes.yaml", "ringcast.service"):
        lines = [
            line
            for line in (DEPLOY / file).read_text().splitlines()
            if "ringcast" in line or "args" in line
        ]
        given = set(re.findall(r"(?<![\w-])--[a-z-]+", "\n".join(lines))) - {"--now"}
        assert given, file
        assert given <= known, file
