"""Five members, 20,000 messages of 1 KB from each to all: complete and in order, with loss and
without."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from ringcast import StackSpec
from ringcast.layers.faults import Faults
from tests.runtime.members import Process, expect_agreement, hear_all
from tests.runtime.namespaces import namespace
from tests.runtime.support import SPECS, group_name

NAMES = "abcde"
MESSAGES = 20_000
SIZE = 1_024
LONG = 120.0

pytestmark = pytest.mark.timeout(400)


@contextmanager
def five(kind: str, loss: float) -> Iterator[Sequence[Process]]:
    """Five members in one view: multicast in a namespace of its own, or TCP on loopback."""
    group, started = group_name(), list[Process]()
    with ExitStack() as stack:
        inside = stack.enter_context(namespace()) if kind == "multicast" else ()
        seed = None
        for name in NAMES:
            spec: StackSpec = SPECS[kind](seed)
            if loss:
                spec = spec.insert(Faults(loss=loss))
            started.append(Process(group, name, spec, *inside, every=MESSAGES))
            stack.callback(started[-1].end)
            if seed is None:
                seed = str(started[0].hear("joined", LONG)["endpoint"])
        for process in started:
            process.hear_view(*NAMES, seconds=LONG)
        yield started


@pytest.mark.parametrize("kind", ["multicast", "tcp"])
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_everything_arrives_in_order(kind: str, loss: float) -> None:
    with five(kind, loss) as members:
        for member in members:
            member.tell(send=MESSAGES, size=SIZE)
        for member in members:
            heard = hear_all(member, dict.fromkeys(NAMES, MESSAGES), LONG)
            assert not any("view" in report or "event" in report for report in heard)
        lost = 0
        for member in members:
            member.tell(ask=True)
            stats = member.hear("told")["stats"]
            assert isinstance(stats, dict)
            lost += stats["counters"].get("dropped_on_purpose", 0)
        assert (lost > 0) == (loss > 0)
        for member in members:
            member.tell(leave=True)
            member.hear("left", LONG)
        expect_agreement(members)
        first = members[0].stays[-1].past
        assert isinstance(first, dict)
        assert {name: counts[2] for name, counts in first.items()} == dict.fromkeys(NAMES, MESSAGES)
