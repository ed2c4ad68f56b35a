"""The protocol's stories: each script in tests/scripts, compared with the whole trace that it
prints.

RINGCAST_REWRITE=1 pytest tests/sim/test_scripts.py writes what they print now; look at the
difference before you commit it.
"""

import os
from pathlib import Path

import pytest

from ringcast.errors import ConfigError
from ringcast.sim.text.script import parse, rewrite

FOLDER = Path(__file__).resolve().parents[1] / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_what_it_says(path: Path) -> None:
    told = path.read_text()
    printed = rewrite(told)
    if os.environ.get("RINGCAST_REWRITE"):
        path.write_text(printed)
    else:
        assert printed.splitlines() == told.splitlines()


def test_the_stories_are_there() -> None:
    assert len(SCRIPTS) >= 11
    for path in SCRIPTS:
        assert path.read_text().startswith("# "), f"{path.name} does not say what it is about"
        assert "all guarantees held" in path.read_text()


def test_blocks_have_commands_and_what_they_print() -> None:
    first, second = parse("# Why\n\nworld\n----\nx\ny\n\njoin a\n----\nz\n")
    assert first.commands == ["# Why", "", "world"]
    assert first.expected == ["x", "y"]
    assert second.commands == ["join a"]
    assert second.expected == ["z"]


@pytest.mark.parametrize(
    "text", ["join a", "world\nfly a", "world\ndrop colour=red", "world wings=2"]
)
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        rewrite(text)
