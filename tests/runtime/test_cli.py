"""`ringcast node` and `status` as a user runs them, on the loopback interface."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.command import Command, commands, endpoint, environment, node, run
from tests.runtime.support import SOON, group_name
from tests.runtime.waiting import wait_until

# node ---------------------------------------------------------------------------------------------


def test_lines_are_messages(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    bob = node(running, home, group, "bob", "--seeds", (where := endpoint(ann)))
    ann.err.hear(f"others join with --seeds {where}")
    ann.err.hear("view 2: ann, bob (bob joined)")
    bob.err.hear("view 2: ann, bob")
    ann.say("hello", "grüß dich")
    for member in (ann, bob):
        assert member.out.hear("hello") == "ann: hello"
        assert member.out.hear("dich") == "ann: grüß dich"
    bob.say("and good bye")
    bob.end_input()
    assert bob.status() == 0
    assert ann.out.hear("bye") == "bob: and good bye"
    assert bob.out.rest() == ["bob: and good bye"]
    assert bob.err.rest() == ["left"]
    ann.err.hear("view 3: ann (bob left)")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_makes_it_leave_in_order(
    number: signal.Signals, running: list[Command], home: Path
) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    bob = node(running, home, group, "bob", "--seeds", endpoint(ann))
    ann.err.hear("bob joined")
    bob.err.hear("view 2")
    bob.signal(number)
    assert bob.status() == 0
    assert bob.err.rest() == ["left"]
    assert ann.err.hear("bob") == "view 3: ann (bob left)", "it is not suspected first"


def test_a_signal_ends_a_join_that_waits(running: list[Command], home: Path) -> None:
    """Its call shows that it runs; nobody answers it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SOON)
        seed = f"127.0.0.1:{silent.getsockname()[1]}"
        ann = node(running, home, group_name(), "ann", "--seeds", seed)
        silent.accept()[0].close()
        ann.signal(signal.SIGTERM)
        assert ann.status() == 130
    assert ann.err.rest() == []


def test_json_is_all_there_is_on_standard_output(running: list[Command], home: Path) -> None:
    ann = node(running, home, group_name(), "ann", "--preset", "tcp", "--json")
    ann.say("one")
    ann.end_input()
    assert ann.status() == 0
    told = [json.loads(line) for line in ann.out.rest()]
    assert [line["type"] for line in told] == ["joined", "view", "message", "left"]
    assert (told[2]["from"], told[2]["text"], told[2]["seqno"]) == ("ann", "one", 1)
    assert ann.err.rest() == []


def test_an_output_that_nobody_reads_ends_it_quietly(home: Path) -> None:
    words = ["node", group_name(), "--name", "ann", "--preset", "tcp", "--stay"]
    with subprocess.Popen(
        [sys.executable, "-m", "ringcast.cli.main", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(b"one\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"ann: one\n"
            process.stdout.close()
            process.stdin.write(b"two\n")
            process.stdin.flush()
            assert process.wait(SOON) == 1
            assert process.stderr.read().splitlines()[2:] == [b"view 1: ann"]
        finally:
            process.kill()


def test_a_port_in_use_and_a_seed_that_is_not_there(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, out, err = run(home, "node", "g", "--port", port)
        assert (status, out) == (2, "")
        assert err == (
            f"ringcast node: 127.0.0.1:{port} is in use by another program:"
            " choose another port, or 0 for a free one\n"
        )
    status, out, err = run(home, "node", "g", "--seeds", "127.0.0.1:9", "--timeout", "0.5")
    assert (status, out) == (1, "")
    assert "not joined within 0.5 seconds: tried seeds 127.0.0.1:9" in err
    assert err.count("\n") == 1


# status -------------------------------------------------------------------------------------------


def test_members_on_this_machine_tell_how_they_are(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    bob = node(running, home, group, "bob", "--seeds", endpoint(ann))
    ann.err.hear("bob joined")
    bob.err.hear("view 2")
    ann.say("one")
    bob.out.hear("one")
    status, out, _ = run(home, "status", group)
    assert status == 0
    assert f"ann in {group}, process" in out
    assert f"bob in {group}, process" in out
    assert out.count("  view 2: ann, bob\n") == 2
    status, out, _ = run(home, "status", "--json")
    assert [member["name"] for member in json.loads(out)["members"]] == ["ann", "bob"]
    _, out, _ = run(home, "status", "--prometheus")
    assert f'ringcast_sent_high{{group="{group}",member="ann"}} 1\n' in out
    status, out, err = run(home, "status", "another")
    assert (status, out) == (1, "")
    assert "no member of another that can be asked runs here" in err


def test_a_watch_repeats_the_state_with_the_time(running: list[Command], home: Path) -> None:
    group = group_name()
    endpoint(node(running, home, group, "ann", "--preset", "tcp"))
    watch = Command(home, "status", group, "--watch", "0.1")
    running.append(watch)
    for _ in range(2):
        while not re.fullmatch(r"at \d\d:\d\d:\d\d", watch.out.hear("at ")):
            pass  # Another line with these letters.
        assert watch.out.hear("ann in").startswith(f"ann in {group}, process ")
    watch.signal(signal.SIGINT)
    assert watch.status() == 130


def test_a_member_that_was_killed_is_not_listed(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    ann.err.hear("view 1")
    assert run(home, "status")[0] == 0
    status, out, err = run(home, "status", "a misspelt group")
    assert (status, out) == (1, "")
    assert f"runs here: there are members of {group}\n" in err
    ann.signal(signal.SIGKILL)
    ann.status()
    assert run(home, "status", "--json")[:2] == (1, '{\n  "members": []\n}\n')


@pytest.mark.parametrize(
    "words",
    [["doctor", "--timeout", "0.1"], ["top", "no-members", "--count", "1"], ["explain", "lan"]],
    ids=" ".join,
)
def test_a_command_runs_without_standard_streams(words: list[str], tmp_path: Path) -> None:
    for closed in ("<&-", ">&-", "<&- >&-"):
        status, _, err = run(tmp_path, *words, wrapper=("sh", "-c", f'exec "$@" {closed}', "sh"))
        assert (status, err) == (0, ""), closed


def test_a_round_of_stability_is_started_from_the_command_line(tmp_path: Path) -> None:
    group = group_name()
    with commands() as running:
        ann = node(running, tmp_path, group, "ann", "--preset", "stable")
        ann.err.hear("joined ")
        status, out, err = run(tmp_path, "stability", group, "--preset", "stable", "--json")
    assert status == 0, err
    assert json.loads(out) == {"group": group, "stable": {"ann": 0}}
    status, out, err = run(tmp_path, "stability", group)
    assert (status, out) == (1, "")
    assert f"no other member of {group}: check the name" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_of_a_swarm_outlives_it(number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ringcast", "swarm", "--seeds", "100000", "--jobs", "2"]
    with subprocess.Popen(words, env=environment(tmp_path), stderr=subprocess.PIPE) as swarm:
        children = Path(f"/proc/{swarm.pid}/task/{swarm.pid}/children")
        wait_until(lambda: len(children.read_text().split()) == 2)
        workers = [Path("/proc") / pid / "stat" for pid in children.read_text().split()]
        swarm.send_signal(number)
        assert swarm.wait(SOON) == (130 if number is signal.SIGINT else -number)
        assert swarm.stderr is not None
        assert b"Traceback" not in swarm.stderr.read()
        wait_until(lambda: not any(map(is_running, workers)))


def is_running(stat: Path) -> bool:
    """Whether the process of this file is there, and is not a zombie that its parent forgot."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
