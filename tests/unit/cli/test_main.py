"""The command line: what it prints, where, and with which exit status."""

import json
import logging
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from ringcast import presets
from ringcast.cli.main import COMMANDS, main
from ringcast.cli.numbers import count, number, port, seconds, whole
from ringcast.runtime.ops.logs import log
from ringcast.trace.check import check
from ringcast.trace.table import read_rows


def number_options(module: str) -> list[str]:
    """The options of a command that take a number."""
    parser = ArgumentParser()
    import_module(module).add_arguments(parser)
    kinds = (number, seconds, whole, port, count)
    return [action.option_strings[-1] for action in parser._actions if action.type in kinds]


def test_every_command_that_joins_a_group_takes_a_key_file() -> None:
    lacking = set()
    for name, (module, _) in COMMANDS.items():
        parser = ArgumentParser()
        import_module(module).add_arguments(parser)
        options = {action.dest for action in parser._actions}
        if "group" in options and "key_file" not in options:
            lacking.add(name)
    assert lacking == {"status"}, "processes of the same user answer it without a key"


def test_a_run_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["sim", "--members", "3", "--messages", "90", "--loss", "0.1", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    assert printed["violations"] == []
    assert printed["delivered"] == printed["expected"] == 270
    assert printed["retransmitted"] >= 0
    assert len(printed["trace_hash"]) == 32
    assert printed["frames"]["DATA"] > 0
    assert printed["members"] == ["m1", "m2", "m3"]


def test_a_run_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--members", "2", "--messages", "10"]) == 0
    assert "delivered:      20 of 20" in capsys.readouterr().out


def test_show_prints_who_sent_what_to_whom(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--members", "2", "--messages", "10", "--senders", "1", "--show"]) == 0
    printed = capsys.readouterr().out
    assert "m1 → all       DATA 1-10" in printed
    assert "m2             delivers m1 1-10" in printed


def test_show_leaves_standard_output_to_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--members", "2", "--messages", "1", "--show", "--json"]) == 0
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert "delivers" in captured.err


def test_faults_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["--crash", "m1@0.1", "--partition", "m2@4", "--heal", "12", "--duration", "3"]
    assert main(["sim", "--members", "4", "--messages", "400", *plan, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["members"] == ["m2", "m3", "m4"]


def test_a_stack_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stack.toml"
    path.write_text(presets.stable().to_toml())
    assert main(["sim", "--members", "2", "--messages", "10", "--spec", str(path)]) == 0
    assert "STABLE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["sim", "--members", "0"], "members"),
        (["sim", "--preset", "wan"], "unknown preset wan"),
        (["sim", "--loss", "7"], "loss"),
        (["sim", "--spec", "nowhere.toml"], "nowhere.toml"),
        (["sim", "--spec", "/proc/self/stat"], "/proc/self/stat: the spec is not TOML"),
        (["sim", "--spec", sys.executable], "it is not text in UTF-8"),
        (["swarm", "--replay", sys.executable], "it is not text in UTF-8"),
        (["sim", "--crash", "m1"], "has no time"),
        (["sim", "--crash", "m9@1"], "no member m9"),
        (["sim", "--crash", "m1@soon"], "soon"),
        (["sim", "--delay", "slow"], "delay"),
        (["sim", "--set", "NakAck4.capacity"], "has no value"),
        (["sim", "--set", "NakAck4.size=1"], "no setting size"),
        (["sim", "--set", "capacity=1"], "name its protocol"),
        (["sim", "--set", "NakAck4.capacity=1", "--set", "multicast.capacity=2"], "set twice"),
        (["sim", "--senders", "9"], "senders"),
        (["sim", "--members", "many"], "members"),
        (["swarm", "--seeds", "0"], "at least 1"),
        (["swarm", "--seeds", "2", "--show"], "one seed"),
        (["fly"], "fly"),
        ([], "COMMAND"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status: object
    try:
        status = main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.startswith("ringcast")
    assert word in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "usage: ringcast" in capsys.readouterr().out


def test_a_former_name_is_shown_once_and_works(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "Pacing.patience=2", "--with", "Pace", "--without", "Large"]
    assert main(["explain", "bulk", *words]) == 0
    printed = capsys.readouterr()
    assert "give_up = 2 seconds" in printed.out
    assert sorted(printed.err.splitlines()) == [
        "ringcast explain: Large is now LargeMessages",
        "ringcast explain: Pace is now Pacing",
        "ringcast explain: Pacing.patience is now give_up",
    ]


def test_a_swarm_of_a_few(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swarm", "--seeds", "2", "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 2


def test_the_speed_of_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sim", "--messages", "2000", "--json"]) == 0
    batched, single = json.loads(capsys.readouterr().out)
    assert (batched["batch"], single["batch"]) == (64, 1)
    assert batched["per_second"] > single["per_second"]


def test_the_trace_of_a_run_and_a_setting(tmp_path: Path) -> None:
    words = ["--members", "3", "--messages", "50", "--set", "NakAck4.capacity=8"]
    assert main(["sim", *words, "--trace", str(tmp_path / "trace")]) == 0
    rows = read_rows(tmp_path / "trace")
    assert check(rows, capacity=8, skips=False) == []
    assert sum(row.count for row in rows if row.kind == "delivered") == 150


@pytest.fixture
def quiet() -> Iterator[None]:
    """The log as it was: commands set it up for their whole process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), log.level
    yield
    root.handlers[:] = handlers
    log.setLevel(level)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["sim", "--size", "999999999999"], "give at most 256,000,000 bytes"),
        (["sim", "--members", "99999999"], "members is 99,999,999: give at most 10,000"),
        (["sim", "--messages", "1" + "0" * 15], "give at most 100,000,000"),
        (["status", "--watch", "1e20"], "give at most 1,000,000,000 seconds"),
        (["sim", "--duration", "inf"], "'inf' is not a number"),
        (["sim", "--timeout", "0"], "give seconds above 0"),
        (["sim", "--bandwidth", "nan"], "'nan' is not a number"),
        (["sim", "--delay", "0.1-inf"], "delay is"),
        (["sim", "--crash", "m1@-1"], "has no time"),
        (["sim", "--heal", "nan"], "has no time"),
        (["sim", "--set", "FailureDetector.timeout=nan"], "give a number that is finite"),
        (["node", ""], "group is empty"),
        (["node", "g", "--key-file", "/proc"], "the key file /proc is not a regular file"),
        (["node", "g", "--timeout", "nan"], "'nan' is not a number"),
        (["node", "g\udcff"], "not Unicode"),
        (["node", "g", "--bind", "\udcff"], "not an address, interface or host"),
        (["node", "g", "--bind", ".."], "not an address, interface or host"),
        (["record", "g", "--to", "/proc/nowhere"], "cannot be written"),
        (["compact", "/nowhere"], "no such directory: /nowhere"),
        (["record", "g", "--to", "/proc"], "is not empty, and no journal"),
        (["record", "g", "--to", "x" * 300], "cannot be written"),
        (["audit", "/proc", "--skew", "-1"], "give 0 to 1,000,000,000 seconds"),
        (["audit", "/proc", "--capacity", "0"], "give at least 1"),
        (["doctor", ""], "the name of the group is empty"),
        (["node", "g", "--prest", "lan"], "--prest lan; did you mean --preset?; see ringcast node"),
        (["explain", "lan", "more"], "ringcast explain: unrecognized arguments: more; see"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(words)
    except SystemExit as error:  # argparse says it.
        status = int(error.code or 0)
    captured = capsys.readouterr()
    assert status == 2
    assert why in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_what_the_disk_says_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device", "x\x1b[31m")

    monkeypatch.setattr("ringcast.cli.commands.explain.run", fail)
    assert main(["explain", "lan"]) == 1
    assert capsys.readouterr().err == ("ringcast explain: x\\x1b[31m: No space left on device\n")


def raised(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of a command that raises this."""

    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("ringcast.cli.commands.explain.run", fail)
    return main(["explain", "lan"])


def test_a_package_that_is_missing_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(ModuleNotFoundError("…", name="pyarrow.parquet"), monkeypatch) == 2
    said = capsys.readouterr().err
    assert "pyarrow.parquet is not installed: run `pip install 'ringcast[journal]'`" in said
    with pytest.raises(ModuleNotFoundError):
        raised(ModuleNotFoundError("…", name="ringcast.nowhere"), monkeypatch)


def test_too_little_memory_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(MemoryError(), monkeypatch) == 1
    assert "ask for less" in capsys.readouterr().err


def test_an_interrupt_while_a_command_is_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("ringcast.cli.main.import_module", interrupted)
    assert main(["audit", "trace"]) == 130
    assert capsys.readouterr().err == ""


def test_a_closed_output_is_no_traceback() -> None:
    command = f"{sys.executable} -m ringcast explain lan >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("words", "status"), [("explain lan", 0), ("explain lann", 2), ("no", 2)])
def test_a_closed_standard_error_changes_no_exit_status(words: str, status: int) -> None:
    command = f"{sys.executable} -m ringcast {words} 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.returncode == status


def test_a_terminal_without_unicode_gets_escapes() -> None:
    words = [sys.executable, "-m", "ringcast", "sim", "--help"]
    said = subprocess.check_output(words, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert b"--crash NAME,\\u2026@TIME" in said


NUMBERS = [
    (name, option) for name, (module, _) in COMMANDS.items() for option in number_options(module)
]


@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_what_is_not_a_number_is_refused_in_a_sentence(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, f"{option}=many"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"argument {option}: 'many' is not a" in said


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("words", [["sim", "--trace"], ["record", "g", "--to"]])
def test_where_nothing_can_be_written_nothing_is_begun(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # Even to root.
    assert main([*words, str(tmp_path)]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_the_command_is_a_module_as_well() -> None:
    said = subprocess.check_output([sys.executable, "-m", "ringcast", "--version"], text=True)
    assert said == f"ringcast {version('ringcast')}\n"


def test_it_runs_from_its_source_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("ringcast.cli.main.version", missing)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "ringcast (run from its source, not installed)\n"
    assert main(["sim", "--members", "2", "--messages", "1"]) == 0
