"""A network that is cut in two, link by link, and mended: one view again within the documented
time."""

from collections.abc import Iterator

import pytest

from ringcast import StackSpec, presets
from ringcast.control.membership.settings import Membership
from ringcast.transports import Tcp, Udp
from tests.runtime.members import Process, await_one_view, expect_agreement, hear_all
from tests.runtime.namespaces import Lan, Wrapper, lan, run
from tests.runtime.support import QUICK, SOON, group_name

SIDES = ("a", "b"), ("c", "d", "e")
MERGE_INTERVAL = 0.5
MERGED = 1.5 * MERGE_INTERVAL + Membership().gather
HEALED = {
    "multicast": MERGED,
    "ordered": MERGED,
    "tcp": MERGED + Tcp().stall_timeout + Tcp().connect_timeout + 1.25 * Tcp().retry_max,
}
"""Seconds until one view, once both sides have noticed, and a view change; connections that have
hung are made anew first."""
SLOW_MACHINE = 20.0


@pytest.fixture
def network() -> Iterator[Lan]:
    """Two sides with a bridge between."""
    with lan(2) as sides:
        yield sides


def part(side: Wrapper, address: str) -> None:
    """Let nothing of that address arrive at this side, nor leave for it."""
    sysctl = "/proc/sys/net/ipv4/conf"
    checks = " && ".join(f"echo 1 > {sysctl}/{name}/rp_filter" for name in ("all", "eth0"))
    run(*side, "sh", "-c", f"{checks} && ip route add blackhole {address}/32")


def stack(kind: str, side: int, seed: str | None) -> StackSpec:
    """The stack of a member on a side."""
    address = f"10.77.1.{side + 1}"
    if kind != "tcp":
        spec = presets.loopback().replace(Udp(bind=address))
        spec = spec.with_total_order() if kind == "ordered" else spec
    else:
        found = {"seeds": [seed]} if seed else {"when_alone": "create"}
        spec = presets.tcp(bind=address, **found)
    return spec.replace(QUICK).replace("Discovery", merge_interval=MERGE_INTERVAL)


@pytest.mark.parametrize("kind", ["multicast", "ordered", "tcp"])
def test_a_cut_link_makes_two_groups_and_a_mended_one_makes_one(network: Lan, kind: str) -> None:
    group, members, seed = group_name(), list[list[Process]](), None
    everybody: list[Process] = []
    try:
        for side, names in enumerate(SIDES):
            members.append([])
            for name in names:
                spec = stack(kind, side, seed)
                process = Process(group, name, spec, *network.sides[side], every=1_000)
                members[side].append(process)
                everybody.append(process)
                if seed is None:
                    seed = str(process.hear("joined")["endpoint"])
        all_names = [process.name for process in everybody]
        for process in everybody:
            process.hear_view(*all_names)
        members[0][0].tell(flood=200)
        members[1][0].tell(flood=200)
        network.cut(1)
        for side in (0, 1):
            for process in members[side]:
                process.hear_view(*SIDES[side])
                process.hear("got")
        network.mend(1)
        await_one_view(everybody, HEALED[kind] + SLOW_MACHINE)
        for process in everybody:
            process.tell(calm=True)
        members[0][1].tell(send=2_000)
        for process in everybody:
            hear_all(process, {"b": 2_000})
        for process in everybody:
            process.tell(leave=True)
            process.hear("left", SOON)
        assert expect_agreement(everybody) >= 10
    finally:
        for process in everybody:
            process.end()


@pytest.mark.parametrize("kind", ["multicast", "tcp"])
def test_a_member_that_a_sender_does_not_reach_gets_its_messages_from_another(kind: str) -> None:
    group, members, seed = group_name(), list[Process](), None
    with lan(3) as sides:
        try:
            for side, name in enumerate("abc"):
                spec = stack(kind, side, seed).replace("FailureDetector", pair_timeout=600.0)
                process = Process(group, name, spec, *sides.sides[side])
                members.append(process)
                endpoint = process.hear("joined")["endpoint"]
                seed = seed or str(endpoint)
            for process in members:
                process.hear_view("a", "b", "c")
            _, b, c = members
            part(sides.sides[2], "10.77.1.2")
            b.tell(send=500)
            for process in members:
                hear_all(process, {"b": 500})
            assert c.stays[-1].names == ["a", "b", "c"], "no view without one of the two"
        finally:
            for process in members:
                process.end()
