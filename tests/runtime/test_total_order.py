"""Total order between real processes: loss, a sequencer that is killed, a join under load."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.runtime.members import (
    Process,
    await_one_view,
    expect_agreement,
    hear_all,
    processes,
)
from tests.runtime.support import SPECS
from tests.runtime.test_agreement import CRASH, SLOW_MACHINE, finish

JOIN = 10.0


def test_one_order_with_loss_a_killed_sequencer_and_a_join_under_load() -> None:
    with joined_under_load(flood=200) as members:
        a, b, *_ = members
        hear_all(b, dict.fromkeys("abcde", 500), 2 * SLOW_MACHINE)
        a.signal(signal.SIGKILL)
        await_one_view(members[1:], CRASH + SLOW_MACHINE)
        finish(*members[1:])
        assert expect_agreement(members) >= 10
        assert delivered(b) >= 2_500
        assert delivered(members[-1]) > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_five_senders_of_twenty_thousand_messages() -> None:
    with joined_under_load(send=10_000) as members:
        a, b, *_ = members
        for member in members[:5]:
            member.tell(send=10_000)
        hear_all(b, {"a": 11_000, "c": 11_000}, 200)
        a.signal(signal.SIGKILL)
        await_one_view(members[1:], CRASH + SLOW_MACHINE)
        for member in members[2:5]:
            hear_all(member, dict.fromkeys("bcde", 20_000), 200)
        finish(*members[1:])
        assert expect_agreement(members) >= 10
        assert delivered(b) >= 4 * 20_000 + 11_000
        assert delivered(members[-1]) >= 10_000


@contextmanager
def joined_under_load(**load: int) -> Iterator[list[Process]]:
    """Five members that have begun to send, and a sixth that has joined meanwhile."""
    with processes(*"abcde", kind="ordered", every=100) as members:
        for member in members:
            member.tell(**load)
        members.append(Process(members[0].group, "f", SPECS["ordered"](None), every=100))
        await_one_view(members, JOIN + SLOW_MACHINE)
        yield members


def delivered(member: Process) -> int:
    """How many messages a member has delivered in all its views."""
    pasts = [stay.past for stay in member.stays if isinstance(stay.past, dict)]
    return sum(past["*"][2] for past in pasts if "*" in past)
