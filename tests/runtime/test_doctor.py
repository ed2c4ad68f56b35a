"""`ringcast doctor` finds what keeps a group from forming, and says it in one sentence."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ringcast import StackSpec, presets
from ringcast.transports import Tcp, Udp
from tests.runtime.command import Command, endpoint, node, run
from tests.runtime.support import SOON, group_name, seeded

# Seeds --------------------------------------------------------------------------------------------


def doctor(home: Path, *words: str, wrapper: tuple[str, ...] = ()) -> tuple[int, dict[str, str]]:
    """The exit status, and of each topic what was found last, with its verdict before it."""
    status, out, err = run(home, "doctor", "--json", *words, wrapper=wrapper)
    assert err == ""
    told = json.loads(out)
    assert told["ok"] == (status == 0)
    return status, {f["topic"]: f"{f['verdict']}: {f['text']}" for f in told["findings"]}


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
    assert ann.err.rest() == ["view 1: ann", "left"], "whoever asks does not come in"


def test_a_seed_of_another_group(running: list[Command], home: Path) -> None:
    ann = node(running, home, group_name(), "ann", "--preset", "tcp")
    seed = endpoint(ann)
    status, found = doctor(home, "--seeds", seed, "--group", "mine")
    assert status == 1
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
        (b"SSH-2.0-OpenSSH_9.7 and so on\r\n", "is no member of a group: check the port"),
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
    assert found["seed"].startswith("warning: nobody listens at 127.0.0.1:9: start a member")


def test_seeds_that_nobody_is_at(home: Path) -> None:
    words = ("--group", "g", "--timeout", "0.5")
    for preset in ("tcp", "lan"):
        seeds = ("--preset", preset, "--seeds", "127.0.0.1:9")
        status, found = doctor(home, *seeds, *words)
        assert status == 1
        assert found["seed"].startswith("problem: nobody listens at 127.0.0.1:9")
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


def multicast(tmp_path: Path) -> tuple[str, StackSpec]:
    """A file with a stack over multicast on the loopback interface, at a port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lent:
        lent.bind(("127.0.0.1", 0))
        spec = presets.loopback().replace(multicast_port=lent.getsockname()[1])
    path = tmp_path / "multicast.toml"
    path.write_text(spec.to_toml())
    return str(path), spec


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
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    alone = ("unshare", "-rn")
    probe = subprocess.run([*alone, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no network namespace can be made: {probe.stderr}")
    status, found = doctor(home, "--preset", "lan", "--bind", "", wrapper=alone)
    assert status == 1
    assert found["route"].startswith("problem: there is no route to 239.77.7.7")
    assert "name the interface in `bind`" in found["port"]


@contextmanager
def greeter(greeting: bytes) -> Iterator[str]:
    """Somebody who says this to whoever connects; where that is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        callers: list[socket.socket] = []

        def serve() -> None:
            try:
                while True:
                    callers.append(server.accept()[0])
                    with suppress(ConnectionError):  # It has gone already.
                        callers[-1].sendall(greeting)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SOON)
        for caller in callers:
            caller.close()


@contextmanager
def shouting(spec: StackSpec, datagram: bytes) -> Iterator[None]:
    """Somebody who says this again and again, on the loopback interface, to all members."""
    udp, over = spec["Udp"], threading.Event()
    assert isinstance(udp, Udp)

    def shout(sock: socket.socket) -> None:
        while not over.wait(0.02):
            sock.sendto(datagram, (udp.multicast, udp.multicast_port))

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        interface = socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        thread = threading.Thread(target=shout, args=(sock,), daemon=True)
        thread.start()
        yield
        over.set()
        thread.join(SOON)
