"""The page of bounds names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_test_that_the_pages_name_exists() -> None:
    missing = []
    for page in ("bounds.md", "guarantees.md"):
        named = NAMED.findall((ROOT / "docs" / page).read_text())
        assert named, page
        for path, name in named:
            file = ROOT / path
            if not file.exists() or (name and f"def {name}(" not in file.read_text()):
                missing.append(f"{page}: {path}::{name}")
    assert missing == []


def test_every_row_of_bounds_names_a_test() -> None:
    rows = [
        line
        for line in (ROOT / "docs/bounds.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| ---", "| what"))
    ]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row)] == []
