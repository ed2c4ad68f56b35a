"""A burst in a large group of real processes: all send at the same moment, and all get all."""

from contextlib import ExitStack

import pytest

from ringcast import presets
from tests.runtime.members import Process, hear_all
from tests.runtime.namespaces import namespace
from tests.runtime.support import group_name

COUNT, MESSAGES, SIZE = 20, 200, 1_000
LONG = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_twenty_processes_that_burst_at_once_get_all_messages() -> None:
    names = [f"m{number}" for number in range(COUNT)]
    with ExitStack() as stack:
        inside = stack.enter_context(namespace())
        group, members = group_name(), list[Process]()
        for name in names:
            members.append(Process(group, name, presets.loopback(), *inside))
            stack.callback(members[-1].end)
        for member in members:
            member.hear_view(*names, seconds=LONG)
        for member in members:
            member.tell(send=MESSAGES, size=SIZE)
        for member in members:
            hear_all(member, dict.fromkeys(names, MESSAGES), LONG)
