"""The site of the documentation: every page is reached, links lead to headings that exist."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools import docs_site
from tools.docs_site import CODE, DOCS, ROOT

SETTINGS = (ROOT / "mkdocs.yml").read_text()


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_the_nav_names_pages_that_exist() -> None:
    named = re.findall(r"^\s+- (?:[^#\n]*: )?([\w/-]+\.md|[\w-]+/)$", SETTINGS, re.MULTILINE)
    assert len(named) > 20
    assert [page for page in named if not (DOCS / page).exists()] == []


def test_the_site_fetches_nothing() -> None:
    assert "font: false" in SETTINGS
    assert "://" not in SETTINGS
    for page in DOCS.rglob("*.md"):
        prose = "".join(CODE.split(page.read_text())[::2])
        assert not re.search(r"<script|<img[^>]*://|!\[[^]]*\]\([a-z]+://", prose), page


def test_links_to_a_heading_name_one_that_exists() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    broken = []
    for page in pages:
        for part in CODE.split(page.read_text())[::2]:
            for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", part):
                leads_to = (page.parent / target) if target else page
                if "://" not in target and anchor not in headings(leads_to):
                    broken.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert broken == []


def test_a_link_out_of_docs_leads_to_a_page_of_the_site() -> None:
    text = docs_site.rewritten(
        "[the example](../examples/my_protocol) and `[no](../link)`", "docs/a.md", "a.md"
    )
    assert text == "[the example](project/examples/my_protocol.md) and `[no](../link)`"
    back = docs_site.rewritten("[api](docs/api.md#calls)", "README.md", "project/README.md")
    assert back == "[api](../api.md#calls)"
    assert "examples/my_protocol" in docs_site.outside()
    assert "class SealLayer" in docs_site.text_of("examples/my_protocol")


def test_the_page_on_testing_names_tests_that_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (DOCS / "testing.md").read_text())
    assert len(named) > 15
    files = {path: (ROOT / "tests" / path).read_text() for path, _ in named}
    assert [name for path, name in named if f"def {name}(" not in files[path]] == []


def test_a_bar_in_the_code_of_a_table_is_not_escaped_in_the_site() -> None:
    text = docs_site.with_bars_in_code("| `a \\| b` | c \\| d |\n`e \\| f`\n")
    assert text == "| `a | b` | c \\| d |\n`e \\| f`\n"


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is installed by make docs only")
def test_the_site_builds_strictly_and_names_no_other_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    loads = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="[a-z]+://')
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    assert [page.name for page in pages if loads.search(page.read_text())] == []
