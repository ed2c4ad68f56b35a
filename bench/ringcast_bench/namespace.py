"""A network of its own for a benchmark: loopback with multicast, apart from the machine's own."""

from __future__ import annotations

import shutil
import subprocess
from types import TracebackType
from typing import Self

from ringcast_bench.job import Missing

SETUP = (
    "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && echo ready && exec cat"
)
TOOLS = ("unshare", "nsenter", "ip")


class Namespace:
    """The commands that run others inside. Where none can be made, `missing` says why."""

    def __init__(self) -> None:
        self.enter: tuple[str, ...] = ()
        self.missing = ""
        self._holder: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
        if lacking:
            self.missing = f"it needs {', '.join(lacking)}"
            return self
        self._holder = holder = subprocess.Popen(
            ["unshare", "-rn", "sh", "-c", SETUP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            self.missing = holder.stderr.readline().strip() or "unshare failed"
            return self
        enter = ("nsenter", "-t", str(holder.pid), "-U", "-n", "--preserve-credentials")
        probe = subprocess.run([*enter, "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            self.missing = probe.stderr.strip() or "it cannot be entered"
        else:
            self.enter = enter
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._holder is not None:
            with self._holder as holder:
                holder.kill()

    @property
    def pids(self) -> list[int]:
        """The process that keeps it alive."""
        return [] if self._holder is None else [self._holder.pid]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a short command inside."""
        return subprocess.run(
            [*self.enter, *words], capture_output=True, text=True, check=False, timeout=10
        )


class Firewall:
    """Drops this percentage of all packets of some kinds inside, while the context is open."""

    TABLE = "inet ringcast_bench"

    def __init__(self, namespace: Namespace, percent: int, kinds: str = "udp") -> None:
        self._namespace, self._percent, self._kinds = namespace, percent, kinds

    def __enter__(self) -> Self:
        """Raises Missing when there is no firewall, or no namespace to have it in."""
        if self._percent:
            if not self._namespace.enter:
                raise Missing("no network namespace")
            if shutil.which("nft") is None:
                raise Missing("no nft here")
            self._nft(f"add table {self.TABLE}")
            self._nft(f"add chain {self.TABLE} input {{ type filter hook input priority 0; }}")
            chance = f"numgen random mod 100 < {self._percent}" if self._percent < 100 else ""
            condition = f"meta l4proto {self._kinds} {chance}"
            self._nft(f"add rule {self.TABLE} input {condition} drop")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._percent:
            self._nft(f"delete table {self.TABLE}")

    def _nft(self, rule: str) -> None:
        done = self._namespace.run("nft", rule)
        if done.returncode:
            raise Missing(f"nft: {done.stderr.strip()}")
