"""The pages about the design notes: commands print the pictures, and links lead somewhere.

RINGCAST_REWRITE=1 pytest tests/sim/test_notes.py writes the pictures anew; look at the difference
before you commit it.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from ringcast.cli.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTES = sorted((DOCS / "notes").glob("*.md"))
PAGES = [*NOTES, DOCS / "jgroups.md", *sorted((DOCS / "decisions").glob("001*.md"))]
BLOCK = re.compile(r"```console\n\$ ringcast ([^\n]*)\n(.*?)```", re.DOTALL)


def picture(printed: str) -> str:
    """The part of a space–time picture from the first message on, without the figures."""
    lines = [line.rstrip() for line in printed.splitlines()]
    begin = next(n for n, line in enumerate(lines) if " DATA " in line)
    end = next(n for n, line in enumerate(lines) if line.startswith("members:"))
    return "".join(f"{line}\n" for line in lines[begin:end])


@pytest.mark.parametrize("page", NOTES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_its_pictures(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks
    for block in blocks:
        assert main(shlex.split(block[1])) == 0
        printed = picture(capsys.readouterr().out)
        if os.environ.get("RINGCAST_REWRITE"):
            text = text.replace(block[0], f"```console\n$ ringcast {block[1]}\n{printed}```")
            page.write_text(text)
        else:
            assert printed == block[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
