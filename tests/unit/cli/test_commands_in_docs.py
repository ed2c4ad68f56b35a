"""Each `ringcast` command that a page shows exists, with its options; simulated runs are run."""

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from importlib import import_module
from pathlib import Path

import pytest

from ringcast.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
IN_BLOCK = re.compile(r"(?:^(?:\$ )?|\$ |\| )ringcast ([a-z]+(?: .*?)?)(?=\s{2,}|$| > | \|)")
INLINE = re.compile(r"`ringcast ([a-z][^`]*)`")
PLACEHOLDERS = r" (--loss L|N|trace/?)(?= |$)|…|\.toml|Word"
"""What a reader has to fill in, or has to have made before."""
LONG = "--members 51"
"""Part of a simulated run that takes long."""


def shown(page: Path) -> list[str]:
    """The commands of a page, without the word `ringcast`."""
    text = page.read_text()
    blocks = [block for language, block in BLOCK.findall(text) if language in ("", "console")]
    lines = [line for block in blocks for line in block.splitlines()]
    inline = INLINE.findall(BLOCK.sub("", text))
    found = [one for line in lines for one in IN_BLOCK.findall(line)]
    return [*found, *(" ".join(one.split()) for one in inline)]


def options(parser: ArgumentParser) -> set[str]:
    """The options of a command and of its subcommands."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                found |= options(inner)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    for command in shown(page):
        name, *_ = command.split()
        assert name in COMMANDS, command
        parser = ArgumentParser()
        import_module(COMMANDS[name][0]).add_arguments(parser)
        unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", command)) - options(parser)
        assert not unknown, f"ringcast {command}"


SIMULATED = sorted(
    {
        command
        for page in PAGES
        if page.parent.name != "notes"  # Their pictures are compared by tests/sim/test_notes.py.
        for command in shown(page)
        if command.startswith("sim --") and not re.search(PLACEHOLDERS, command)
    }
)


def test_simulated_runs_were_found() -> None:
    assert len(SIMULATED) >= 5


@pytest.mark.parametrize("command", SIMULATED)
def test_a_simulated_run_of_a_page_ends_well(command: str) -> None:
    if LONG in command:
        pytest.skip(
            "it takes 10 seconds of CPU; tests/sim/test_large.py sends large messages at loss"
        )
    assert main(shlex.split(command)) == 0
