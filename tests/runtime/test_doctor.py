"""`ringcast doctor` finds what keeps a group from forming, and says it in one sentence."""

import json
import os
import socket
from pathlib import Path

import pytest

from ringcast.transports import Tcp, Udp
from tests.runtime.command import Command, endpoint, node
from tests.runtime.namespaces import namespace
from tests.runtime.strangers import doctor, greeter, multicast, shouting
from tests.runtime.support import group_name, seeded

# Seeds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", [Tcp(), Udp(multicast="")], ids=["tcp", "udp"])
def test_a_group_that_is_there(
    transport: Tcp | Udp, running: list[Command], home: Path, tmp_path: Path
) -> None:
    group, founder, asker = group_name(), tmp_path / "founder.toml", tmp_path / "asker.toml"
    founder.write_text(seeded(transport, None).to_toml())
    ann = node(running, home, group, "ann", "--spec", str(founder))
    seed = endpoint(ann)
    asker.write_text(seeded(transport, seed).to_toml())
    status, found = doctor(home, "--spec", str(asker), "--group", group)
    assert status == 0
    assert found["seed"] == f'ok: {seed} answers: ann, in view 1 of "{group}"'
    assert found["members"] == f'ok: "{group}" is there: view 1, made by ann at {seed}'
    ann.say("still here")
    assert ann.out.hear("still") == "ann: still here"
    ann.end_input()
    assert ann.status() == 0
    assert ann.err.rest()[-2:] == ["view 1: ann", "left"], "the doctor does not join"


def test_a_seed_of_another_group(running: list[Command], home: Path) -> None:
    ann = node(running, home, group_name(), "ann", "--preset", "tcp")
    seed = endpoint(ann)
    status, found = doctor(home, "mine", "--seeds", seed)
    assert status == 1
    assert doctor(home, "--group", "mine", "--seeds", seed) == (status, found)
    assert found["seed"] == (
        f"problem: {seed} is in another group: check the name of the group, and the port"
    )
    status, found = doctor(home, "--seeds", seed)
    assert status == 0
    assert found["seed"].startswith(f"ok: a member answers at {seed}")


def test_a_seed_of_another_group_over_udp(
    running: list[Command], home: Path, tmp_path: Path
) -> None:
    """It says nothing, so all that may be the reason is said."""
    path = tmp_path / "stack.toml"
    path.write_text(seeded(Udp(multicast=""), None).to_toml())
    seed = endpoint(node(running, home, group_name(), "ann", "--spec", str(path)))
    words = ("--spec", str(path), "--seeds", seed, "--timeout", "0.5")
    status, found = doctor(home, *words, "--group", "mine")
    assert status == 1
    assert found["seed"].startswith(f"problem: {seed} does not answer: it is in another group")
    status, found = doctor(home, *words)
    assert status == 0
    assert found["seed"].startswith(f"warning: {seed} says nothing: with --group")


@pytest.mark.parametrize(
    ("greeting", "expected"),
    [
        (b"RCtc\xff\0\0\0" + bytes(16), "speaks another version of the protocol"),
        (b"SSH-2.0-OpenSSH_9.7 and so on\r\n", "is not a member of a group: check the port"),
        (b"", "takes connections and says nothing"),
    ],
    ids=["version", "stranger", "silent"],
)
def test_what_listens_at_a_seed(greeting: bytes, expected: str, home: Path) -> None:
    with greeter(greeting) as seed:
        status, found = doctor(home, "--seeds", seed, "--group", "g", "--timeout", "1.5")
    assert status == 1
    assert found["seed"].startswith(f"problem: {seed} {expected}")


def test_seeds_of_which_one_answers(running: list[Command], home: Path) -> None:
    group = group_name()
    ann = node(running, home, group, "ann", "--preset", "tcp")
    seeds = f"{endpoint(ann)},127.0.0.1:9"
    status, found = doctor(home, "--seeds", seeds, "--group", group)
    assert status == 0
    assert found["seed"].startswith("warning: no process listens at 127.0.0.1:9: start a member")


def test_seeds_that_nobody_is_at(home: Path) -> None:
    words = ("--group", "g", "--timeout", "0.5")
    for preset in ("tcp", "lan"):
        seeds = ("--preset", preset, "--seeds", "127.0.0.1:9")
        status, found = doctor(home, *seeds, *words)
        assert status == 1
        assert found["seed"].startswith("problem: no process listens at 127.0.0.1:9")
    status, found = doctor(home, "--seeds", "203.0.113.9:7", *words)
    assert "cannot reach 127.0.0.1, which this member is bound to" in found["seed"]


def test_ports_and_addresses_that_cannot_be_bound(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, found = doctor(home, "--port", port)
        assert status == 1
        assert found["port"].startswith(f"problem: 127.0.0.1:{port} is in use")
    status, found = doctor(home, "--preset", "tcp", "--bind", "203.0.113.7")
    assert status == 1
    assert "203.0.113.7:0 is not an address of this machine" in found["port"]


def test_the_member_itself_among_the_seeds(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as lent:
        port = str(lent.getsockname()[1])
    status, found = doctor(home, "--port", port, "--seeds", f"127.0.0.1:{port}", "--group", "g")
    assert status == 0
    assert found["seed"] == f"ok: 127.0.0.1:{port} is this member itself: the group can begin here"


# Multicast ----------------------------------------------------------------------------------------


def test_members_that_multicast_finds(running: list[Command], home: Path, tmp_path: Path) -> None:
    (path, _), group = multicast(tmp_path), group_name()
    ann = node(running, home, group, "ann", "--spec", path)
    where = endpoint(ann)
    status, found = doctor(home, "--spec", path, "--group", group, "--timeout", "2")
    assert status == 0
    assert found["multicast"].startswith("ok: what is sent to 239.77.7.7:")
    assert found["members"] == f'ok: "{group}" is there: view 1, made by ann at {where}'
    status, found = doctor(home, "--spec", path, "--group", "mine", "--timeout", "4")
    assert found["multicast"].startswith("warning: 1 members of other groups are heard")
    assert found["members"].startswith('warning: no member of "mine" was found')


def test_another_version_on_multicast(home: Path, tmp_path: Path) -> None:
    path, spec = multicast(tmp_path)
    with shouting(spec, b"RC\xff" + bytes(60)):
        status, found = doctor(home, "--spec", path, "--group", "g", "--timeout", "2")
    assert status == 1
    assert "speaks another version of the protocol (version 255, this is 1)" in found["multicast"]


def test_no_route_for_multicast(home: Path) -> None:
    """In a network namespace of its own, which has no interface that is up, and no route."""
    with namespace("true") as inside:
        status, found = doctor(home, "--preset", "lan", wrapper=inside)
    assert status == 1
    assert found["route"].startswith("problem: there is no route to 239.77.7.7")
    assert "name the interface in `bind`" in found["port"]


# A name and a directory ---------------------------------------------------------------------------


def test_members_that_a_directory_leads_to(
    running: list[Command], home: Path, tmp_path: Path
) -> None:
    group, place = group_name(), str(tmp_path / "meet")
    words = ("--file", place, "--group", group)
    status, found = doctor(home, *words)
    assert (status, found["file"]) == (
        0,
        f"ok: {place} does not exist yet: the first member makes it",
    )
    ann = node(running, home, group, "ann", "--file", place)
    where = endpoint(ann)
    status, found = doctor(home, *words)
    assert status == 0
    assert found["file"] == f'ok: {where} answers: ann, in view 1 of "{group}"'
    assert found["members"] == f'ok: "{group}" is there: view 1, made by ann at {where}'


def test_notices_of_the_dead_and_of_others(home: Path, tmp_path: Path) -> None:
    for number, (group, at) in enumerate([("g", 1), ("g", 0), ("other", 0)]):
        path = tmp_path / f"{number:016x}.member"
        path.write_text(json.dumps({"group": group, "name": "x", "endpoint": "127.0.0.1:9"}))
        if at:
            os.utime(path, (at, at))
    status, out = doctor(home, "--file", str(tmp_path), "--group", "g", topic="file")
    assert status == 0, "none of these keeps a group from forming"
    assert out[0] == (
        f"ok: {tmp_path} has 1 notice of members that are gone, 1 notice of members,"
        " 1 notice of other groups"
    )
    assert out[1].startswith("warning: no process listens at 127.0.0.1:9")
    assert len(list(tmp_path.iterdir())) == 3, "looking changes nothing"


def test_a_directory_that_is_none(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, found = doctor(home, "--file", str(tmp_path / "file"), "--group", "g")
    assert status == 1
    assert found["file"].startswith(f"problem: {tmp_path}/file cannot be read (Not a directory)")


def test_members_that_a_name_leads_to(running: list[Command], home: Path) -> None:
    group = group_name()
    where = endpoint(node(running, home, group, "ann", "--preset", "tcp"))
    port = where.rpartition(":")[2]
    words = ("--dns", f"localhost:{port}", "--group", group)
    status, out = doctor(home, *words, "--port", "0", topic="dns")
    assert status == 0
    assert out[0] == f"ok: localhost has 1 address: {where}"
    assert out[-1] == f'ok: {where} answers: ann, in view 1 of "{group}"'


def test_a_name_that_leads_to_nobody_else(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as lent:
        port = lent.getsockname()[1]
    status, found = doctor(home, "--dns", f"localhost:{port}", "--group", "g")
    assert status == 0
    assert found["dns"] == f"ok: 127.0.0.1:{port} is this member itself: the group can begin here"
    words = ("--dns", "127.0.0.7:9", "--port", str(port), "--group", "g")
    status, out = doctor(home, *words, topic="dns")
    assert status == 1
    assert out[1].startswith(f"warning: this member, at 127.0.0.1:{port}, is not among them")
    assert out[2].startswith("problem: no process listens at 127.0.0.7:9")


def test_a_name_that_is_not_known(home: Path) -> None:
    status, found = doctor(home, "--dns", "no-such-name.invalid", "--group", "g")
    assert status == 1
    assert found["dns"].startswith("problem: no-such-name.invalid: ")
    assert "check the name" in found["dns"]
