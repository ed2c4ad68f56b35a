"""What people run into first: a member says it in one sentence, and `doctor` finds it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.runtime.command import Command, commands, endpoint, node, run
from tests.runtime.namespaces import Wrapper, namespace
from tests.runtime.strangers import doctor, greeter, multicast, shouting
from tests.runtime.support import group_name

UNREACHABLE = (
    "ip link set lo up && ip addr add 10.1.1.1/32 dev lo && ip route add unreachable 10.9.0.0/16"
)


class Trouble(NamedTuple):
    """Something that is wrong."""

    words: tuple[str, ...]
    """The arguments of the command that runs into it."""
    sentence: str
    """A part of what the member says."""
    topic: str
    finding: str
    """A part of what the doctor says, under this topic."""
    wrapper: Wrapper = ()


@pytest.fixture
def trouble(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Trouble]:
    """The trouble with this name, as long as the test takes."""
    with ExitStack() as stack:
        running = stack.enter_context(commands())
        yield TROUBLES[request.param](stack, running, home, tmp_path)


def wrong_port(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    member = endpoint(node(running, home, "g", "ann", "--preset", "tcp"))
    with socket.create_server(("127.0.0.1", 0)) as lent:
        seed = f"127.0.0.1:{lent.getsockname()[1]}"
    assert seed != member
    said = "no process listens there: start a member, or check the port"
    return Trouble(("--seeds", seed), said, "seed", f"problem: no process listens at {seed}")


def port_in_use(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    port = taken.getsockname()[1]
    said = f"127.0.0.1:{port} is in use by another program: choose another port"
    return Trouble(("--port", str(port)), said, "port", f"problem: {said}")


def no_route(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    inside = stack.enter_context(namespace("true"))
    said = "there is no route to 239.77.7.7"
    return Trouble(("--preset", "lan"), said, "route", f"problem: {said}", inside)


def unreachable_seed(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    inside = stack.enter_context(namespace(UNREACHABLE))
    words = ("--seeds", "10.9.9.9:7800", "--bind", "10.1.1.1")
    said = "it cannot be reached from here: check the address, the route and the firewall"
    found = "problem: 10.9.9.9:7800 cannot be reached (No route to host)"
    return Trouble(words, said, "seed", found, inside)


def another_group(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    seed = endpoint(node(running, home, group_name(), "ann", "--preset", "tcp"))
    said = "a member of another group is there: check the name of the group, and the port"
    return Trouble(("--seeds", seed), said, "seed", f"problem: {seed} is in another group")


def other_groups_nearby(
    stack: ExitStack, running: list[Command], home: Path, place: Path
) -> Trouble:
    path, _ = multicast(place)
    endpoint(node(running, home, group_name(), "ann", "--spec", path))
    # A member of another group speaks now and then, and is heard within that time.
    words = ("--spec", path, "--when-alone", "wait", "--timeout", "3")
    said = "a member of another group is there"
    return Trouble(words, said, "multicast", "warning: 1 members of other groups are heard")


def another_version(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    seed = stack.enter_context(greeter(b"RCtc\xff\0\0\0" + bytes(16)))
    said = "a process there speaks another version of the protocol: update one of the two"
    return Trouble(("--seeds", seed), said, "seed", f"problem: {seed} speaks another version")


def another_version_nearby(
    stack: ExitStack, running: list[Command], home: Path, place: Path
) -> Trouble:
    path, spec = multicast(place)
    stack.enter_context(shouting(spec, b"RC\xff" + bytes(60)))
    words = ("--spec", path, "--when-alone", "wait")
    said = "a process there speaks another version of the protocol: update one of the two"
    return Trouble(words, said, "multicast", "speaks another version of the protocol (version 255")


def no_member(stack: ExitStack, running: list[Command], home: Path, place: Path) -> Trouble:
    seed = stack.enter_context(greeter(b"SSH-2.0-OpenSSH_9.7 and so on\r\n"))
    said = "what listens there is not a member of a group: check the port"
    return Trouble(("--seeds", seed), said, "seed", f"problem: {seed} is not a member of a group")


TROUBLES = {
    "wrong port": wrong_port,
    "port in use": port_in_use,
    "no multicast route": no_route,
    "unreachable seed": unreachable_seed,
    "another group at the seed": another_group,
    "another group on the same port": other_groups_nearby,
    "another version at the seed": another_version,
    "another version on the same port": another_version_nearby,
    "no member at the seed": no_member,
}


@pytest.mark.parametrize("trouble", TROUBLES, indirect=True)
def test_a_trouble_is_one_sentence_and_the_doctor_finds_it(trouble: Trouble, home: Path) -> None:
    words = trouble.words if "--timeout" in trouble.words else (*trouble.words, "--timeout", "1")
    status, out, err = run(home, "node", "g", *words, wrapper=trouble.wrapper)
    assert (status != 0, out) == (True, "")
    *logged, said = err.splitlines()
    assert said.startswith("ringcast node: ")
    assert trouble.sentence in said
    assert all(line.startswith("ringcast: ") for line in logged), "no traces, no noise"
    words = (*words[:-2], "--timeout", "3") if "--spec" in words else words
    words = tuple(word for word in words if word not in ("--when-alone", "wait"))
    _, found = doctor(home, "--group", "g", *words, wrapper=trouble.wrapper, topic=trouble.topic)
    assert any(trouble.finding in text for text in found), found
