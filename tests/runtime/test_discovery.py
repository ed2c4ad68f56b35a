"""Members that find each other by seeds, multicast, a name, a shared directory, or several."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import ringcast
from ringcast import StackSpec, presets, sync
from ringcast.control.discovery import Discovery
from ringcast.transports import Tcp, Udp
from tests.runtime.members import Process
from tests.runtime.namespaces import Wrapper, namespace
from tests.runtime.support import (
    QUICK,
    ROOT,
    SOON,
    await_view,
    group_name,
    running,
    take_bytes,
)
from tests.runtime.waiting import wait_until


def by_file(directory: Path, **settings: object) -> StackSpec:
    """TCP on the loopback interface, met in a directory."""
    spec = presets.tcp(file=str(directory)).replace(QUICK)
    return spec.replace("Discovery", merge_interval=0.3, refresh=0.5, **settings)


def notices(directory: Path) -> list[str]:
    """The files of members."""
    return sorted(path.name for path in directory.iterdir())


@contextmanager
def joined(group: str, *specs: StackSpec) -> Iterator[list[sync.Group]]:
    """Members that start at the same moment."""
    found: list[sync.Group | None] = [None] * len(specs)

    def join(place: int) -> Callable[[], None]:
        def run() -> None:
            found[place] = sync.join(group, specs[place], name=f"m{place}", timeout=SOON)

        return run

    with ExitStack() as stack:
        for place in range(len(specs)):
            stack.enter_context(running(join(place)))
    groups = [member for member in found if member is not None]
    try:
        yield groups
    finally:
        for member in groups:
            member.close()


# A shared directory -------------------------------------------------------------------------------


def test_members_that_start_together_meet_in_a_directory(tmp_path: Path) -> None:
    directory = tmp_path / "made by the first"
    with joined(group_name(), *[by_file(directory)] * 6) as groups:
        for group in groups:
            await_view(group, 6)
        assert len({group.view for group in groups}) == 1
        assert len(notices(directory)) == 6
        groups[0].leave(timeout=SOON)
        assert len(notices(directory)) == 5
    assert notices(directory) == [], "a file goes with its member, however that goes"


@pytest.mark.parametrize("udp", [Udp(multicast=""), Udp(bind="::1", multicast="")])
def test_udp_without_multicast_meets_in_a_directory_as_well(tmp_path: Path, udp: Udp) -> None:
    spec = by_file(tmp_path).replace(udp)
    with joined(group_name(), *[spec] * 3) as groups:
        for group in groups:
            await_view(group, 3)


def test_groups_share_a_directory_and_do_not_mix(tmp_path: Path) -> None:
    with (
        joined(group_name(), *[by_file(tmp_path)] * 2) as (a, b),
        joined(group_name(), by_file(tmp_path)) as (c,),
    ):
        await_view(a, 2)
        await_view(b, 2)
        assert len(c.view) == 1
        assert len(notices(tmp_path)) == 3


def test_files_of_the_dead_and_of_strangers_are_no_obstacle(tmp_path: Path) -> None:
    group = group_name()
    dead = json.dumps({"group": group, "name": "dead", "endpoint": "127.0.0.1:9"})
    (tmp_path / "00000000000000aa.member").write_text(dead)
    (tmp_path / "00000000000000bb.member").write_text("{half a not")
    (tmp_path / "00000000000000cc.member").write_bytes(bytes(100_000))
    os.mkfifo(tmp_path / "00000000000000dd.member")
    (tmp_path / "00000000000000ee.member").symlink_to("/dev/zero")
    (tmp_path / "README").write_text("not a member")
    old = tmp_path / "00000000000000ff.member"
    old.write_text(dead)
    os.utime(old, (1, 1))
    with joined(group, *[by_file(tmp_path)] * 2) as groups:
        for member in groups:
            await_view(member, 2)
        assert not old.exists(), "a file that nobody renews is removed"
        assert (tmp_path / "00000000000000aa.member").exists(), "this one may be alive"
        assert (tmp_path / "README").exists()


def test_a_killed_member_leaves_a_file_that_does_no_harm(tmp_path: Path) -> None:
    group, spec = group_name(), by_file(tmp_path)
    first = Process(group, "first", spec)
    try:
        first.hear_view("first")
        first.signal(signal.SIGKILL)
    finally:
        first.end()
    assert len(notices(tmp_path)) == 1
    with joined(group, spec, spec) as groups:
        for member in groups:
            await_view(member, 2)


def test_a_directory_that_was_swept_is_written_anew(tmp_path: Path) -> None:
    group = group_name()
    with joined(group, by_file(tmp_path)) as (a,):
        for path in tmp_path.iterdir():
            path.unlink()
        wait_until(lambda: len(notices(tmp_path)) == 1)
        with joined(group, by_file(tmp_path)) as (b,):
            await_view(a, 2)
            await_view(b, 2)


def test_a_directory_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        with pytest.raises(ringcast.ConfigError, match="name a directory"):
            sync.join("g", presets.tcp(file=str(tmp_path / place)), timeout=SOON)


# Several ways at once -----------------------------------------------------------------------------


def test_one_member_knows_a_seed_and_another_the_directory(tmp_path: Path) -> None:
    """The one in the middle knows both, and so all three are one group."""
    group = group_name()
    with joined(group, presets.tcp(when_alone="create").replace(QUICK)) as (a,):
        both = by_file(tmp_path, seeds=(a.endpoint,))
        with joined(group, both) as (b,), joined(group, by_file(tmp_path)) as (c,):
            for member in (a, b, c):
                await_view(member, 3)
            c.send(b"to all")
            assert take_bytes(a, 1) == take_bytes(b, 1) == [b"to all"]


def test_parts_that_formed_apart_find_each_other_in_the_directory(tmp_path: Path) -> None:
    """Each begins a group of its own, since neither sees the other's file; then they do."""
    group, one, two = group_name(), tmp_path / "one", tmp_path / "two"
    with joined(group, by_file(one)) as (a,), joined(group, by_file(two)) as (b,):
        assert len(a.view) == len(b.view) == 1
        for path in two.iterdir():
            (one / path.name).write_bytes(path.read_bytes())
        await_view(a, 2)
        await_view(b, 2)


# A name -------------------------------------------------------------------------------------------

Names = Callable[..., Sequence[object]]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the name "service.test"; other names are what they are."""
    addresses: list[str] = []
    real: Names = socket.getaddrinfo

    def lookup(host: str, port: int, *rest: object, **more: object) -> Sequence[object]:
        if host != "service.test":
            return real(host, port, *rest, **more)
        if not addresses:
            raise socket.gaierror(socket.EAI_NODATA, "No address associated with hostname")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return addresses


def by_name(host: str, port: int) -> StackSpec:
    """TCP at one of the addresses of a service."""
    spec = presets.tcp(dns="service.test", port=port, bind=host).replace(QUICK)
    return spec.replace("Discovery", merge_interval=0.3, refresh=0.3)


def test_members_of_a_service_that_start_together_form_one_group(service: list[str]) -> None:
    port, hosts = free_port(), [f"127.0.0.{number}" for number in range(2, 6)]
    service[:] = [*hosts, "127.0.0.99"]
    with joined(group_name(), *(by_name(host, port) for host in hosts)) as groups:
        for group in groups:
            await_view(group, 4)
        assert len({group.view for group in groups}) == 1


def test_a_service_that_gets_its_addresses_late(service: list[str]) -> None:
    """As where members are published only when they are ready: they wait, then form one group."""
    port, group = free_port(), group_name()
    found: list[sync.Group] = []

    def join(host: str) -> Callable[[], None]:
        return lambda: found.append(sync.join(group, by_name(host, port), timeout=SOON))

    with running(join("127.0.0.2")), running(join("127.0.0.3")):
        assert not found
        service[:] = ["127.0.0.2", "127.0.0.3"]
    try:
        for member in found:
            await_view(member, 2)
    finally:
        for member in found:
            member.close()


def test_a_name_service_that_hangs_keeps_nobody_from_working(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, over = threading.Event(), threading.Event()
    real: Names = socket.getaddrinfo

    def lookup(host: str, *rest: object, **more: object) -> Sequence[object]:
        if host == "hangs.test":
            asked.set()
            over.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    group = group_name()
    try:
        with joined(group, presets.tcp(when_alone="create")) as (a,):
            spec = presets.tcp(seeds=[a.endpoint], dns="hangs.test:7800", port=free_port())
            with joined(group, spec) as (b,):
                assert asked.wait(SOON)
                assert len(b.view) == 2, "the seed has answered"
                b.leave(timeout=SOON)
        with pytest.raises(ringcast.Timeout, match=r"hangs\.test:\d+ \(no answer yet\)"):
            sync.join(group, presets.tcp(dns="hangs.test", port=free_port()), timeout=0.5)
    finally:
        over.set()


def test_a_headless_service_in_a_name_service(home: Path) -> None:
    """The real thing, in a namespace with a resolv.conf and a name service of its own."""
    (home / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:5\n")
    (home / "nsswitch.conf").write_text("hosts: dns\n")
    setup = "ip link set lo up" + "".join(
        f" && mount --bind {home}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf")
    )
    hosts = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    spec = presets.tcp(dns="ringcast.default.svc", port=7800).replace(QUICK)
    spec = spec.replace("Discovery", merge_interval=0.3, refresh=0.5)
    with ExitStack() as stack:
        inside = stack.enter_context(namespace(setup, mounts=True))
        say = stack.enter_context(name_service(inside))
        say(*hosts[:2])
        group, started = group_name(), list[Process]()
        for host in hosts[:2]:
            started.append(Process(group, host, spec.replace(Tcp(bind=host, port=7800)), *inside))
            stack.callback(started[-1].end)
        for process in started:
            process.hear_view(*hosts[:2])
        say(*hosts)
        third = Process(group, hosts[2], spec.replace(Tcp(bind=hosts[2], port=7800)), *inside)
        stack.callback(third.end)
        third.hear_view(*hosts)


@contextmanager
def name_service(inside: Wrapper) -> Iterator[Callable[..., None]]:
    """A name service; what it is told are the addresses of every name."""
    server = subprocess.Popen(
        [*inside, sys.executable, "-S", str(ROOT / "tests/runtime/nameserver.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def say(*addresses: str) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(" ".join(addresses) + "\n")
        server.stdin.flush()
        assert server.stdout.readline() == "known\n"

    with server:
        assert server.stdout.readline() == "ready\n"
        yield say
        server.kill()


# Nobody there -------------------------------------------------------------------------------------


def ways(tmp_path: Path) -> dict[str, Discovery]:
    """Every way to look for others, none of which leads to anybody."""
    return {
        "multicast": Discovery(),
        "seeds 127.0.0.1:9": Discovery(multicast=False, seeds=("127.0.0.1:9",)),
        "the name localhost:9 (127.0.0.1:9)": Discovery(multicast=False, dns="localhost:9"),
        f"the directory {tmp_path} (no other member there)": Discovery(
            multicast=False, file=str(tmp_path)
        ),
    }


@pytest.mark.parametrize("way", range(4), ids=["multicast", "seeds", "dns", "file"])
def test_a_member_that_finds_nobody_does_what_it_is_asked_to(way: int, tmp_path: Path) -> None:
    tried, discovery = list(ways(tmp_path).items())[way]
    spec = presets.loopback() if way == 0 else presets.tcp(when_alone="create")
    spec = spec.replace(discovery).replace("Discovery", timeout=0.1)
    with pytest.raises(ringcast.JoinFailed) as failed:
        sync.join(group_name(), spec.replace("Discovery", when_alone="fail"), timeout=SOON)
    assert f"no group found: tried {tried}" in str(failed.value)
    with pytest.raises(ringcast.Timeout) as late:
        sync.join(group_name(), spec.replace("Discovery", when_alone="wait"), timeout=0.4)
    assert f"not joined within 0.4 seconds: tried {tried} from" in str(late.value)
    with sync.join(
        group_name(), spec.replace("Discovery", when_alone="create"), timeout=SOON
    ) as alone:
        assert len(alone.view) == 1


@pytest.mark.parametrize("way", range(4), ids=["multicast", "seeds", "dns", "file"])
def test_a_member_that_waits_joins_the_first_that_comes(
    way: int, tmp_path: Path, service: list[str]
) -> None:
    group, port = group_name(), free_port()
    service[:] = ["127.0.0.1"]
    discovery = [
        Discovery(),
        Discovery(multicast=False, seeds=(f"127.0.0.1:{port}",)),
        Discovery(multicast=False, dns=f"service.test:{port}"),
        Discovery(multicast=False, file=str(tmp_path)),
    ][way]
    stack = presets.loopback() if way == 0 else presets.tcp(when_alone="create")
    found: list[sync.Group] = []

    def join() -> None:
        waiting = stack.replace(discovery).replace("Discovery", when_alone="wait", timeout=0.1)
        found.append(sync.join(group, waiting, timeout=SOON))

    with running(join):
        founding = stack.replace(discovery).replace("Discovery", when_alone="create", timeout=0.1)
        a = sync.join(group, founding.replace("transport", port=port), timeout=SOON)
    try:
        await_view(a, 2)
        assert len(found[0].view) == 2
    finally:
        for member in (a, *found):
            member.close()


def test_an_address_that_others_cannot_reach_is_named() -> None:
    spec = presets.tcp(dns="203.0.113.9:7800", port=free_port())
    with pytest.raises(ringcast.Timeout, match=r"127\.0\.0\.1 is reached from this machine only"):
        sync.join(group_name(), spec, timeout=0.4)


def free_port() -> int:
    """A port that is free at every loopback address, for a while."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as lent:
        lent.bind(("0.0.0.0", 0))
        return int(lent.getsockname()[1])
