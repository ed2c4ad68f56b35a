"""A switched network of its own: one namespace per member, and a bridge between them.

A process holds each namespace open and ends when its standard input does. So nothing is left of a
network when the process that built it ends, however it ends, and no name is ever taken outside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from ringcast_bench.job import Missing

MTU = 1_500
TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}
"""What every network needs, with the Debian package that has it."""
MORE_TOOLS = {"ethtool": "ethtool", "nft": "nftables"}
"""What switching offload off and losing packets need."""
HOLD = "ip link set lo up && echo ready && exec cat"
NFT = (
    "table netdev bench {{ chain ingress {{ type filter hook ingress device eth0 priority 0;"
    " policy accept; numgen random mod 1000 < {permille} drop; }}; }}"
)
SWALLOW = (
    "table netdev swallow{member} {{ chain egress {{ type filter hook egress device port{member}"
    " priority 0; policy accept; {which} meta length > {above} drop; }}; }}"
)
ETHERNET_HEADER = 14
BURST_MIN, BURST_MAX = 10_000, 50_000
"""Bytes that a shaped link may send at once. With much less the kernel's timers are too late to
carry a gigabit (TCP got 0.37 of it with 14 KB). What the sender's device has joined is cut before
the queue if it is larger, as in a switch; else it waits and is dropped as one. A link whose rate
falls keeps its burst: a joined packet that is larger than the new one, at the head of the
queue, would block the link for good."""


class Bridge:
    """Members 0, 1, … at 10.77.0.1, 10.77.0.2, …, each with one port of the bridge.

    Raises Missing on entry when the network cannot be built here.
    """

    def __init__(self, mtus: Sequence[int]) -> None:
        self._mtus = mtus
        self._bursts: dict[tuple[int, str], int] = {}
        self._holders: list[subprocess.Popen[str]] = []
        self._prefix: tuple[str, ...] = ()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        require(TOOLS)
        with ExitStack() as stack:
            self._stack = stack
            # Without root, a user namespace gives the rights, where the kernel lets it.
            self._prefix = () if os.geteuid() == 0 else ("-U", "--preserve-credentials")
            rights = () if os.geteuid() == 0 else ("-r",)
            self._hold("unshare", *rights, "-n")
            self._switch("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
            self._switch("ip", "link", "set", "br0", "mtu", str(max(self._mtus)), "up")
            for number, mtu in enumerate(self._mtus):
                self._plug(number, mtu)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def pids(self) -> list[int]:
        """The processes that hold the namespaces open."""
        return [holder.pid for holder in self._holders]

    def enter(self, member: int) -> tuple[str, ...]:
        """The command that runs another one at a member."""
        return self._enter(self._holders[1 + member])

    def sent(self) -> int:
        """Bytes that the interfaces of all members have sent until now."""
        return sum(_sent(holder.pid) for holder in self._holders[1:])

    def lose(self, permille: int) -> None:
        """Drop packets where they arrive, at each member independently."""
        require(MORE_TOOLS)
        for member in range(len(self._mtus)):
            self._at(member, "nft", NFT.format(permille=permille))

    def switch_offload_off(self) -> None:
        """Let every member send single packets, so that each can be lost."""
        require(MORE_TOOLS)
        for member in range(len(self._mtus)):
            self._at(member, "ethtool", "-K", "eth0", "tx-udp-segmentation", "off")

    def swallow(self, member: int, above: int, source: int | None = None) -> None:
        """Drop packets above this size without a word on their way to a member; only those of one
        source, if it is given. Offload has to be off, or packets are joined to larger ones."""
        require(MORE_TOOLS)
        which = "" if source is None else f"ip saddr {address(source)}"
        above += ETHERNET_HEADER
        self._switch("nft", SWALLOW.format(member=member, which=which, above=above))

    def shape_to(self, member: int, rate: int, queue: int) -> None:
        """Give the link from the bridge to a member this rate in bit/s, and a queue in bytes."""
        self._switch(*self._shaping(member, f"port{member}", rate, queue))

    def shape_from(self, member: int, rate: int, queue: int) -> None:
        """The same for the link from a member to the bridge."""
        self._at(member, *self._shaping(member, "eth0", rate, queue))

    def set_mtu(self, member: int, mtu: int) -> None:
        """Change the MTU of a member's interface."""
        self._at(member, "ip", "link", "set", "eth0", "mtu", str(mtu))

    def set_port_mtu(self, member: int, mtu: int) -> None:
        """Change the MTU of the bridge's port: larger packets vanish there."""
        self._switch("ip", "link", "set", f"port{member}", "mtu", str(mtu))

    def _plug(self, number: int, mtu: int) -> None:
        holder = self._hold(*self._enter(self._holders[0]), "unshare", "-n")
        port, size = f"port{number}", ("mtu", str(mtu))
        peer = ("peer", "name", "eth0", "netns", str(holder.pid))
        self._switch("ip", "link", "add", port, *size, "type", "veth", *peer)
        self._switch("ip", "link", "set", port, "master", "br0", "up")
        self._at(number, "ip", "addr", "add", f"{address(number)}/24", "dev", "eth0")
        self._at(number, "ip", "link", "set", "eth0", *size, "up")
        self._at(number, "ip", "route", "add", "224.0.0.0/4", "dev", "eth0")

    def _hold(self, *command: str) -> subprocess.Popen[str]:
        holder = subprocess.Popen(
            [*command, "sh", "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.enter_context(holder)  # Waits for its end, after the next line.
        self._stack.callback(holder.kill)
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            raise Missing(f"no network namespace: {holder.stderr.readline().strip()}")
        self._holders.append(holder)
        return holder

    def _enter(self, holder: subprocess.Popen[str]) -> tuple[str, ...]:
        return ("nsenter", "-t", str(holder.pid), *self._prefix, "-n")

    def _shaping(self, member: int, device: str, rate: int, queue: int) -> tuple[str, ...]:
        burst = max(BURST_MIN, min(BURST_MAX, rate // 8_000), self._bursts.get((member, device), 0))
        self._bursts[member, device] = burst
        words = f"tc qdisc replace dev {device} root tbf rate {rate}bit burst {burst} limit {queue}"
        return tuple(words.split())

    def _switch(self, *words: str) -> None:
        _run(*self._enter(self._holders[0]), *words)

    def _at(self, member: int, *words: str) -> None:
        _run(*self.enter(member), *words)


def address(member: int) -> str:
    """The IP address of a member."""
    return f"10.77.0.{member + 1}"


def require(tools: dict[str, str]) -> None:
    """Raises Missing when one of these commands is not installed."""
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if lacking:
        packages = " ".join(sorted({tools[tool] for tool in lacking}))
        raise Missing(f"no {', '.join(lacking)} here: install {packages}")


def why_not() -> str:
    """Why no such network can be built here; empty when it can."""
    try:
        require(TOOLS | MORE_TOOLS)
        with Bridge([MTU]):
            return ""
    except Missing as error:
        return str(error)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    if done.returncode:
        inner = " ".join(words[words.index("-n") + 1 :])
        raise Missing(f"'{inner}' failed: {done.stderr.strip()}")


def _sent(pid: int) -> int:
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "eth0":
            return int(numbers.split()[8])
    return 0
