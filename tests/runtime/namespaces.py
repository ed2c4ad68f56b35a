"""Networks of a test's own: namespaces with interfaces, routes and links that it can cut."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

TOOLS = ("unshare", "nsenter", "ip")
LOOPBACK = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo"

Wrapper = tuple[str, ...]
"""The command that runs another one in a namespace."""


@contextmanager
def namespace(setup: str = LOOPBACK, *, mounts: bool = False) -> Iterator[Wrapper]:
    """A network namespace of this user's, with mounts of its own if asked; skips if none can be."""
    if not all(shutil.which(tool) for tool in TOOLS):
        pytest.skip(f"needs {', '.join(TOOLS)}")
    kinds = ("-n", "-m") if mounts else ("-n",)
    with _held(["unshare", "-r", *kinds, "sh", "-c"], setup) as pid:
        enter = ("nsenter", "-t", str(pid), "-U", *kinds, "--preserve-credentials")
        probe = subprocess.run([*enter, "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            pytest.skip(f"the network namespace cannot be entered: {probe.stderr}")
        yield enter


class Lan:
    """Sides that a bridge connects; each is a namespace of its own, at 10.77.1.<number>."""

    def __init__(self, bridge: Wrapper, sides: list[Wrapper]) -> None:
        self.sides = sides
        self._bridge = bridge

    def cut(self, side: int) -> None:
        """Take the link of a side down; inside, its interface is still up."""
        run(*self._bridge, "ip", "link", "set", f"side{side}", "down")

    def mend(self, side: int) -> None:
        """Take the link up again."""
        run(*self._bridge, "ip", "link", "set", f"side{side}", "up")


@contextmanager
def lan(count: int) -> Iterator[Lan]:
    """This many sides; skips where there are no namespaces or bridges."""
    setup = (
        "ip link add bridge0 type bridge mcast_snooping 0 forward_delay 0 stp_state 0"
        " && ip link set bridge0 up"
    )
    with ExitStack() as stack:
        bridge = stack.enter_context(namespace(setup))
        sides = list[Wrapper]()
        for number in range(count):
            pid = stack.enter_context(_held([*bridge, "unshare", "-n", "sh", "-c"], "true"))
            port = f"side{number}"
            peer = ("peer", "name", "eth0", "netns", str(pid))
            run(*bridge, "ip", "link", "add", port, "type", "veth", *peer)
            run(*bridge, "ip", "link", "set", port, "master", "bridge0", "up")
            enter = ("nsenter", "-t", str(pid), "-U", "-n", "--preserve-credentials")
            run(*enter, "ip", "addr", "add", f"10.77.1.{number + 1}/24", "dev", "eth0")
            run(*enter, "ip", "link", "set", "eth0", "up")
            run(*enter, "ip", "link", "set", "lo", "up")
            sides.append(enter)
        yield Lan(bridge, sides)


def run(*words: str) -> str:
    """Run a command that has to succeed; what it printed."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@contextmanager
def _held(command: list[str], setup: str) -> Iterator[int]:
    """A process that holds a namespace after the setup; its id. Skips where it cannot be made."""
    holder = subprocess.Popen(
        [*command, f"{setup} && echo ready && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != "ready\n":
                pytest.skip(f"no network namespace can be made: {holder.stderr.readline()}")
            yield holder.pid
        finally:
            holder.kill()
