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


AT_HAND = (
    ("--help", 0),
    ("explain lan", 0),
    ("explain lan --toml", 0),
    ("keygen group.key", 0),
    ("status --explain", 1),
    ("status --prometheus", 1),
    ("status chat", 1),
    ("doctor chat --seeds 127.0.0.1:7801 --timeout 0.1", 1),
)
"""Commands of pages that need no group; without a member here some say so and fail."""


@pytest.mark.parametrize(("command", "expected"), AT_HAND)
def test_a_command_that_needs_no_group_ends_as_expected(
    command: str,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    try:
        status = main(shlex.split(command))
    except SystemExit as end:
        status = int(end.code or 0)
    printed = capsys.readouterr()
    assert status == expected, printed.err
    assert printed.out or printed.err


RUN_BY = {
    "audit": "tests/runtime/test_tutorial.py::test_the_audit_of_the_last_step_is_clean",
    "bench": "tests/runtime/test_bench.py::test_a_scenario_has_rows_medians_ratios_and_goals",
    "compact": "tests/unit/journal/write/test_compact.py::test_the_command_says_what_it_did",
    "completion": "tests/unit/cli/test_completion.py::test_the_command_prints_a_script",
    "demo": "tests/spark/test_demo.py::test_every_guarantee_held_under_faults",
    "doctor": "tests/runtime/test_doctor.py::test_a_group_that_is_there",
    "explain": "tests/unit/cli/commands/test_explain.py::test_every_preset_can_be_explained",
    "keygen": "tests/unit/closed/test_keys.py::"
    "test_a_generated_file_is_for_its_owner_and_has_one_key",
    "node": "tests/runtime/test_cli.py::test_lines_are_messages",
    "record": "tests/runtime/test_record.py::test_the_command_records_until_sigterm",
    "sim": "tests/unit/cli/test_commands_in_docs.py::test_a_simulated_run_of_a_page_ends_well",
    "soak": "tests/runtime/test_soak.py::test_a_short_soak_is_clean",
    "stability": "tests/runtime/test_cli.py::"
    "test_a_round_of_stability_is_started_from_the_command_line",
    "status": "tests/runtime/test_cli.py::test_members_on_this_machine_tell_how_they_are",
    "swarm": "tests/runtime/test_cli.py::test_no_worker_of_a_swarm_outlives_it",
    "sweep": "tests/spark/test_sweep.py::test_a_cluster_gives_the_same_answers",
    "top": "tests/runtime/test_top.py::"
    "test_a_stuck_group_is_joined_shown_frozen_sorted_and_explained",
    "ui": "tests/runtime/test_live_page.py::"
    "test_a_join_a_recorder_a_slow_member_and_a_kill_are_seen_in_the_page",
    "upload": "tests/unit/journal/write/test_upload.py::test_the_command_says_what_it_did",
}
"""Per command: a test that runs it, with real members, files or Spark where it needs these."""


def test_each_command_of_the_pages_is_run_by_a_test() -> None:
    used = {command.split()[0] for page in PAGES for command in shown(page)}
    assert used <= RUN_BY.keys()
    assert set(RUN_BY) == set(COMMANDS)


@pytest.mark.parametrize("command", RUN_BY)
def test_the_test_that_runs_a_command_exists(command: str) -> None:
    path, _, name = RUN_BY[command].partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
