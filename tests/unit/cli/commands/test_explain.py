"""`ringcast explain`: text, JSON and TOML on standard output; one sentence when it cannot."""

import json
from pathlib import Path

import pytest

from ringcast import StackSpec, presets
from ringcast.cli.main import main


def test_explain_prints_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "stable"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("Flow: ") < printed.index("NakAck3: ") < printed.index("Udp: ")


def test_explain_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tcp", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["name"] == "tcp"
    assert "Promises what `lan` promises." in printed["promise"]
    (tcp,) = [p for p in printed["protocols"] if p["name"] == "Tcp"]
    assert tcp["role"] == "transport"
    assert {
        "name": "connect_timeout",
        "value": 2.0,
        "unit": "seconds",
        "source": "default",
        "about": "Seconds that a connection may take.",
    } in tcp["settings"]


def test_toml_can_be_changed_and_explained_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "lan", "--toml"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out.replace("capacity = 16384", "capacity = 99"))
    assert main(["explain", str(path)]) == 0
    assert "  capacity = 99 messages  (file)" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["wan", "nowhere.toml"])
def test_what_cannot_be_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert name in captured.err


@pytest.mark.parametrize(
    ("name", "meant"),
    [("slow", "SlowMembers"), ("multicast", "NakAck3 or NakAck4"), ("tpc", "tcp"), ("Upd", "Udp")],
)
def test_a_role_and_a_slip_are_answered_with_what_was_meant(
    name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name]) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")


def test_a_switch_is_shown_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "lan"]) == 0
    assert "  retain = true  (default)" in capsys.readouterr().out
    assert main(["explain", "lan", "--set", "NakAck4.retain=false"]) == 0
    assert "  retain = false  (argument)" in capsys.readouterr().out


def test_every_preset_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for name in presets.PRESETS:
        assert main(["explain", name]) == 0
    assert capsys.readouterr().err == ""


def test_one_protocol_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Pacing"]) == 0
    assert capsys.readouterr().out.startswith("Pacing (flow): ")
    assert main(["explain", "Pacing", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "Pacing"
    assert main(["explain", "Pacig"]) == 2
    assert "did you mean Pacing?" in capsys.readouterr().err


def test_a_changed_stack_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    change = ["--with", "SlowMembers.policy=skip", "--without", "PathMtu", "--set"]
    assert main(["explain", "lan", *change, "NakAck4.capacity=99"]) == 0
    printed = capsys.readouterr().out
    unwrapped = " ".join(printed.split())
    assert "has SlowMembers besides" in unwrapped
    assert "has no PathMtu" in unwrapped
    assert '  policy = "skip"  (argument)' in printed
    assert "  capacity = 99 messages  (argument)" in printed
    assert "  bound = 5.0 seconds  (default)" in printed
    assert main(["explain", "lan", *change, "NakAck4.capacity=99", "--toml"]) == 0
    assert StackSpec.from_toml(capsys.readouterr().out)["NakAck4"].values()["capacity"] == 99


def test_a_change_needs_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "NakAck4", "--with", "Compress"]) == 2
    assert "NakAck4 is a protocol" in capsys.readouterr().err
