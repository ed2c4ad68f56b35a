"""The network of a soak: a namespace for each member, a bridge between them, and links that fail.

A link fails by a rule of the firewall (`nft`) in the namespace of the receiver: so two members may
not reach each other, or only in one direction, or packets are lost, while all others go on.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack
from typing import NamedTuple

from ringcast.errors import ConfigError

TOOLS = ("unshare", "nsenter", "ip", "nft")
SUBNET = "10.78.1"
BRIDGE = (
    "ip link add bridge0 type bridge mcast_snooping 0 forward_delay 0 stp_state 0"
    " && ip link set bridge0 up"
)
CHAIN = "add table ip soak; add chain ip soak links { type filter hook input priority 0; }"
READY = "ready\n"


class SoakSide(NamedTuple):
    """Where one member lives."""

    address: str
    enter: tuple[str, ...]
    """The command that runs another one there."""


class SoakNetwork:
    """A bridge and its sides."""

    def __init__(self, count: int, stack: ExitStack) -> None:
        """Raises ConfigError where no such network can be made."""
        if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
            raise ConfigError(f"--network needs {', '.join(missing)}: install it")
        self._stack = stack
        bridge = self._hold("unshare", "-r", "-n", "sh", "-c", setup=BRIDGE)
        self.sides = [self._add(bridge, number + 1) for number in range(count)]

    def cut(self, source: SoakSide, target: SoakSide) -> None:
        """Nothing of one side reaches the other; the way back stays as it is."""
        self._rule(target, f"ip saddr {source.address} drop")

    def lose(self, target: SoakSide, percent: int) -> None:
        """So many of a hundred packets to a side are lost."""
        self._rule(target, f"numgen random mod 100 < {percent} drop")

    def mend(self) -> None:
        """All links are sound again."""
        for side in self.sides:
            _run(*side.enter, "nft", "flush", "chain", "ip", "soak", "links")

    def _rule(self, target: SoakSide, rule: str) -> None:
        _run(*target.enter, "nft", f"add rule ip soak links {rule}")

    def _add(self, bridge: tuple[str, ...], number: int) -> SoakSide:
        enter = self._hold(*bridge, "unshare", "-n", "sh", "-c", setup="true")
        port, address = f"side{number}", f"{SUBNET}.{number}"
        peer = ("peer", "name", "eth0", "netns", enter[2])
        _run(*bridge, "ip", "link", "add", port, "type", "veth", *peer)
        _run(*bridge, "ip", "link", "set", port, "master", "bridge0", "up")
        _run(*enter, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        _run(*enter, "ip", "link", "set", "eth0", "up")
        _run(*enter, "ip", "link", "set", "lo", "up")
        _run(*enter, "nft", CHAIN)
        return SoakSide(address, enter)

    def _hold(self, *command: str, setup: str) -> tuple[str, ...]:
        """A namespace that lasts as long as the soak; the command that enters it."""
        holder = self._stack.enter_context(
            subprocess.Popen(
                [*command, f"{setup} && echo ready && exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        self._stack.callback(holder.kill)
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != READY:
            raise ConfigError(
                f"--network: no namespace can be made here ({holder.stderr.readline().strip()})"
            )
        return ("nsenter", "-t", str(holder.pid), "-U", "-n", "--preserve-credentials")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"--network: {' '.join(words)}: {done.stderr.strip()}")
