"""Fifty members, a process each, that start at the same moment: one view, and everybody heard."""

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ringcast import presets
from tests.runtime.members import Process, await_one_view, hear_all
from tests.runtime.namespaces import namespace
from tests.runtime.support import group_name
from tests.runtime.waiting import block

COUNT = 50
LONG = 120.0
MEMORY_MAX = 60 << 20
"""Bytes that one member may take."""
IDLE = 5.0
"""Seconds for which they are watched while nothing is to be done."""
IDLE_MAX = 0.03
"""The share of a core that one of them may take then, on average."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("kind", ["multicast", "tcp"])
def test_fifty_members_form_one_view_and_exchange_messages(kind: str, tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(COUNT)]
    with ExitStack() as stack:
        inside = stack.enter_context(namespace()) if kind == "multicast" else ()
        spec = presets.loopback() if kind == "multicast" else presets.tcp(file=str(tmp_path))
        group, members = group_name(), list[Process]()
        for name in names:
            members.append(Process(group, name, spec, *inside))
            stack.callback(members[-1].end)
        await_one_view(members, LONG)
        for member in members:
            member.tell(send=100, size=100)
        for member in members:
            hear_all(member, dict.fromkeys(names, 100), LONG)
        assert max(map(memory, members)) < MEMORY_MAX
        assert idle_share(members) < IDLE_MAX
        # All at once: those who are left at the end do not wait for each other for ever.
        for member in members:
            member.tell(leave=True)
        for member in members:
            assert str(member.hear("left", LONG)["left"]).startswith("left")


def memory(member: Process) -> int:
    """The bytes that a process has in memory."""
    pages = int(Path(f"/proc/{member.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def idle_share(members: list[Process]) -> float:
    """The share of a core that one takes on average, with nothing to do."""
    before, began = sum(map(cpu_seconds, members)), time.monotonic()
    block(IDLE)
    used = sum(map(cpu_seconds, members)) - before
    return used / (time.monotonic() - began) / len(members)


def cpu_seconds(member: Process) -> float:
    """The time that a process has computed."""
    fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
