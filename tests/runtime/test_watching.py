"""`ringcast node` and `record` as they are watched: logs with facts, and figures for Prometheus."""

import json
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.runtime.command import Command, endpoint, node, run
from tests.runtime.support import group_name


def free_port() -> int:
    """A port that is free for a while."""
    with socket.create_server(("127.0.0.1", 0)) as lent:
        return int(lent.getsockname()[1])


def test_a_log_as_json(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp", "--log", "json")
    bob = node(running, home, group, "bob", "--seeds", endpoint(ann))
    told = json.loads(ann.err.hear('"joined": ["bob"]'))
    assert (told["event"], told["level"], told["view"]) == ("view", "info", 2)
    assert told["members"] == ["ann", "bob"]
    bob.signal(signal.SIGKILL)
    told = json.loads(ann.err.hear('"event": "suspected"'))
    assert (told["level"], told["peer"]) == ("warning", "bob")
    assert json.loads(ann.err.hear('"left": ["bob"]'))["members"] == ["ann"]


def test_a_log_of_warnings_as_text(running: list[Command], home: Path) -> None:
    group = group_name()
    words = ("--preset", "tcp", "--log", "text", "--log-level", "warning")
    ann = node(running, home, group, "ann", *words)
    bob = node(running, home, group, "bob", "--seeds", endpoint(ann))
    ann.err.hear("bob joined")
    bob.signal(signal.SIGKILL)
    line = ann.err.hear("WARNING ringcast.group")
    assert f"ann in {group}: bob does not answer" in line
    assert f"event=suspected group={group} member=ann view=2 peer=bob" in line


def test_without_a_log_nothing_is_said_twice(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    bob = node(running, home, group, "bob", "--seeds", endpoint(ann))
    ann.err.hear("bob joined")
    bob.signal(signal.SIGKILL)
    assert ann.err.hear("bob") == "bob does not answer, and is suspected to have crashed"
    assert ann.err.hear("bob") == "view 3: ann (bob left)"


@pytest.mark.parametrize("command", ["node", "record", "top", "ui", "stability"])
def test_a_command_says_whom_it_waits_for_and_ends_at_ctrl_c(
    command: str, running: list[Command], home: Path
) -> None:
    group, nobody = group_name(), f"127.0.0.1:{free_port()}"
    more = {"record": ("--to", str(home / "journal")), "ui": ("--page-port", "0")}
    joining = Command(home, command, group, "--seeds", nobody, *more.get(command, ()))
    running.append(joining)
    told = joining.err.hear("not joined yet")
    assert told.startswith(f'ringcast: the group "{group}" is not joined yet: tried seeds {nobody}')
    joining.signal(signal.SIGINT)
    assert joining.status() == 130


def test_figures_at_a_port(running: list[Command], home: Path, tmp_path: Path) -> None:
    group, port, other = group_name(), free_port(), free_port()
    ann = node(running, home, group, "ann", "--preset", "tcp", "--metrics", str(port))
    words = ("--to", str(tmp_path / "j"), "--seeds", endpoint(ann), "--name", "tape")
    tape = Command(home, "record", group, *words, "--metrics", f"127.0.0.1:{other}")
    running.append(tape)
    ann.err.hear("tape joined")
    for name, where in (("ann", port), ("tape", other)):
        with urllib.request.urlopen(f"http://127.0.0.1:{where}/metrics", timeout=15) as answer:
            body = answer.read().decode()
        assert f'ringcast_members{{group="{group}",member="{name}"}} 2\n' in body


def test_a_port_that_is_taken_is_one_sentence(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = run(home, "node", group_name(), "--metrics", str(port))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"no metrics can be served at 127.0.0.1:{port}" in err
