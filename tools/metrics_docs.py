"""Writes what follows from the register of counters: docs/metrics.md and the Grafana dashboard.

python -m tools.metrics_docs       after a counter or a metric was added
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ringcast import protocols
from ringcast.core.stack.counters import all_declared
from ringcast.runtime.ops.metrics import described

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
DASHBOARD = ROOT / "examples" / "deploy" / "grafana-dashboard.json"

PANELS = (
    ("Members of the view", "ringcast_members", "none", "{{member}}"),
    ("Views per minute", "60 * rate(ringcast_view_number[5m])", "none", "{{member}}"),
    ("Messages sent per second", "rate(ringcast_sent_high[1m])", "none", "{{member}}"),
    (
        *("Messages taken per second", "rate(ringcast_window_delivered[1m])"),
        *("none", "{{member}} from {{sender}}"),
    ),
    ("Bytes sent per second", "rate(ringcast_transport_sent_bytes_total[1m])", "Bps", "{{member}}"),
    (
        *("Bytes received per second", "rate(ringcast_transport_received_bytes_total[1m])"),
        *("Bps", "{{member}}"),
    ),
    ("Blocked sends: seconds", "ringcast_blocked_seconds", "s", "{{member}}"),
    ("Who waits for whom", "ringcast_waits_for", "none", "{{member}} waits for {{peer}}"),
    ("Suspected members", "ringcast_suspected", "none", "{{member}} suspects {{peer}}"),
    ("Messages resent per second", "rate(ringcast_resent_total[1m])", "none", "{{member}}"),
    ("Messages asked for per second", "rate(ringcast_requested_total[1m])", "none", "{{member}}"),
    ("Bytes put aside for a blocked application", "ringcast_aside_bytes", "bytes", "{{member}}"),
    ("A recorder's lag", "ringcast_recorder_lag_ms", "ms", "{{member}}"),
    ("Congestion window", "ringcast_congestion_window", "bytes", "{{member}}"),
    (
        "Datagrams dropped per second",
        'rate({__name__=~"ringcast_(transport_)?dropped_.*_total"}[1m])',
        "none",
        "{{member}} {{__name__}}",
    ),
)  # fmt: skip
"""Title, expression, unit and legend."""


def page() -> str:
    """docs/metrics.md."""
    assert protocols.names()  # All protocols are imported, and have declared their counters.
    lines = [
        "# Metrics",
        "",
        "What `/metrics` serves and `ringcast status --prometheus` prints. This page is written by",
        "`python -m tools.metrics_docs` from the code. Every series has the labels `group` and",
        "`member`; `examples/deploy/` has a dashboard for Grafana and rules for alerts.",
        "",
        "| gauge | meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {about} |" for name, about in sorted(described().items())),
        "",
        "Counters of the stack are `ringcast_NAME_total`, those of the transport",
        "`ringcast_transport_NAME_total`. A star stands for any ending.",
        "",
        "| counter | unit | meaning |",
        "| --- | --- | --- |",
    ]
    for counter in sorted(all_declared()):
        lines.append(f"| `{counter.name}` | {counter.unit} | {counter.about} |")
    return "\n".join(lines) + "\n"


def dashboard() -> str:
    """The dashboard, to be imported into Grafana."""
    panels = [
        {
            "id": number + 1,
            "title": title,
            "type": "timeseries",
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [{"expr": _of_group(expression), "legendFormat": legend, "refId": "A"}],
        }
        for number, (title, expression, unit, legend) in enumerate(PANELS)
    ]
    variables = [
        {"name": "source", "type": "datasource", "query": "prometheus"},
        {
            "name": "group",
            "type": "query",
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "query": "label_values(ringcast_members, group)",
            "refresh": 2,
        },
    ]
    made = {
        "title": "Ringcast",
        "uid": "ringcast",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "tags": ["ringcast"],
        "templating": {"list": variables},
        "panels": panels,
    }
    return json.dumps(made, indent=2) + "\n"


def _of_group(expression: str) -> str:
    """The expression for the chosen group only."""
    label = 'group="$group"'
    if "{" in expression:
        return expression.replace("{", "{" + label + ",", 1)
    return re.sub(r"ringcast_\w+", rf"\g<0>{{{label}}}", expression, count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
    DASHBOARD.write_text(dashboard())
