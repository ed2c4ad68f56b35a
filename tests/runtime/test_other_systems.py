"""Systems without eventfd, epoll, BPF and the error queue: groups and simulator run there as well.

The names are hidden from a Python process before it imports Ringcast. kqueue is played by epoll.
"""

import subprocess
import sys

import pytest

from tests.runtime.support import ROOT, SOON

HIDE = """
import asyncio, os, select, selectors, socket, sys, urllib.request
selectors.DefaultSelector = selectors.PollSelector
import sysconfig; sysconfig.get_config_vars()
sys.platform = "darwin"
real_epoll = select.epoll
for module, prefixes in ((os, ("eventfd", "EFD_")), (select, ("epoll", "EPOLL")),
                         (socket, ("MSG_ERRQUEUE", "SO_ATTACH", "SO_RXQ", "SO_MARK"))):
    for name in list(vars(module)):
        if name.startswith(prefixes):
            delattr(module, name)

class Kevent:
    def __init__(self, ident, filter=1, flags=1):
        self.ident, self.filter, self.flags = ident, filter, flags

class Kqueue:
    def __init__(self):
        self._epoll, self._masks = real_epoll(), {}
    def fileno(self):
        return self._epoll.fileno()
    def close(self):
        self._epoll.close()
    def control(self, changes, count, timeout):
        for change in changes or ():
            old = self._masks.get(change.ident, 0)
            bit = 1 if change.filter == -1 else 4
            new = old | bit if change.flags == 1 else old & ~bit
            try:
                self._epoll.modify(change.ident, new)
            except FileNotFoundError:  # New, or closed and opened again.
                self._epoll.register(change.ident, new)
            self._masks[change.ident] = new
        if not count:
            return []
        out = []
        for fd, events in self._epoll.poll(timeout):
            out += [Kevent(fd, -1)] if events & ~4 else []
            out += [Kevent(fd, -2)] if events & 4 else []
        return out

select.kqueue, select.kevent = Kqueue, Kevent
select.KQ_FILTER_READ, select.KQ_FILTER_WRITE, select.KQ_EV_ADD, select.KQ_EV_DELETE = -1, -2, 1, 2
"""

IMPORTS = """
import importlib, pathlib
for path in sorted(pathlib.Path("src/ringcast/").rglob("*.py")):
    words = path.with_suffix("").parts[1:]
    if words[-1] != "__main__" and not {"spark", "demo", "soak"} & set(words):
        importlib.import_module(".".join(words))
"""

SIMULATOR = """
from ringcast import presets
from ringcast.sim import World
world = World(seed=7, spec=presets.lan(), loss=0.1)
a, b, c = world.join("a", "b", "c")
a.send(b"x")
world.settle()
assert [m.payload for m in b.delivered] == [b"x"]
assert world.check() == []
"""

GROUP = """
import asyncio
import ringcast
from ringcast import presets, sync
from ringcast.transports import Memory
first = SPEC
with sync.join("g", first, name="a") as a:
    second = presets.tcp(seeds=[a.endpoint]) if "tcp" in sys.argv else first
    with sync.join("g", second, name="b") as b:
        while len(a.view) < 2:
            next(a.events(timeout=30))
        a.send_many([b"x" * 2_000] * 5_000)
        for group in (b,):
            for number, message in enumerate(group):
                if number == 4_999:
                    break

async def answer():
    async with ringcast.join("h", first, on_call=lambda message: message.payload) as group:
        async def serve():
            async for _ in group: pass
        serving = asyncio.create_task(serve())
        assert (await group.call(b"hello", timeout=30)).ok
        serving.cancel()

asyncio.run(answer())
"""

TESTS = """
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/unit/runtime"]))
"""
"""Those that need a Linux interface are skipped there, by its name."""

PROGRAMS = {
    "imports": IMPORTS,
    "simulator": SIMULATOR,
    "memory": GROUP.replace("SPEC", "presets.loopback().replace(Memory())"),
    "tcp": GROUP.replace("SPEC", 'presets.tcp(when_alone="create")'),
    "tests": TESTS,
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_needs_no_linux_interface_runs_without_one(what: str) -> None:
    program = f"{HIDE}\n{PROGRAMS[what]}"
    done = subprocess.run(
        [sys.executable, "-c", program, what],
        cwd=ROOT,
        env={"PYTHONPATH": "src", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=6 * SOON,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
