"""UDP multicast in a network namespace that the test makes itself, apart from the machine's own."""

import signal
from collections.abc import Iterator

import pytest

from ringcast import StackSpec, presets
from ringcast.transports import Udp
from tests.runtime.members import Process
from tests.runtime.namespaces import LOOPBACK, Wrapper, namespace
from tests.runtime.support import QUICK, SOON, group_name

SETUP = (
    f"{LOOPBACK} && "
    "ip link add veth0 type veth peer name veth1 && "
    "ip addr add 10.77.0.1/24 dev veth0 && ip -6 addr add fd77::1/64 dev veth0 nodad && "
    "ip link set veth0 up && ip link set veth1 up"
)


@pytest.fixture(scope="module")
def network() -> Iterator[Wrapper]:
    """The command that runs another one in the namespace."""
    with namespace(SETUP) as inside:
        yield inside


def spec(udp: Udp) -> StackSpec:
    """A stack over multicast."""
    return presets.loopback().replace(QUICK, udp)


@pytest.mark.parametrize(
    "udp",
    [
        Udp(),
        Udp(bind="10.77.0.1", ttl=4),
        Udp(bind="veth0"),
        Udp(bind="fd77::1", multicast="ff02::7777"),
    ],
    ids=["loopback", "address", "interface", "ipv6"],
)
def test_multicast_on_an_interface(network: Wrapper, udp: Udp) -> None:
    group, stack = group_name(), spec(udp)
    started: list[Process] = []
    try:
        started.extend(Process(group, name, stack, *network) for name in ("a", "b", "c"))
        for process in started:
            process.hear_view("a", "b", "c")
        for process in started:
            process.tell(send=1_000, size=1_000)
        for process in started:
            got = {"a": 0, "b": 0, "c": 0}
            while min(got.values()) < 1_000:
                report = process.hear("got")
                assert report["in_order"]
                got[str(report["from"])] = int(str(report["got"]))
        a, b, c = started
        a.signal(signal.SIGKILL)
        first = b.hear_view("b", "c")["id"]
        assert c.hear_view("b", "c")["id"] == first
    finally:
        for process in started:
            process.end()


def test_the_members_outside_are_not_heard(network: Wrapper) -> None:
    group = group_name()
    inside = Process(group, "inside", spec(Udp()), *network)
    outside = Process(group, "outside", spec(Udp()))
    try:
        assert inside.hear("view", SOON)["view"] == ["inside"]
        assert outside.hear("view", SOON)["view"] == ["outside"]
    finally:
        inside.end()
        outside.end()
