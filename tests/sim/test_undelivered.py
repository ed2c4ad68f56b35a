"""Messages to one member that leaves the view are delivered, or their sender is told."""

import pytest

from ringcast import presets
from ringcast.core.model.events import Undelivered
from ringcast.sim import Member, World


def told(member: Member) -> list[Undelivered]:
    return [event for event in member.events if isinstance(event, Undelivered)]


def test_the_sender_is_told_what_an_expelled_member_has_not_acked() -> None:
    world = World(1, presets.lan())
    a, b, c = world.join("a", "b", "c")
    c.pause()
    a.send([b"one", b"two", b"three"], to=c)
    world.run_until(lambda: a.view is not None and c.me not in a.view, 10.0)
    world.settle()
    (event,) = told(a)
    assert (event.members, event.count, event.direct) == ((c.me,), 3, True)
    assert told(b) == []


def test_nothing_is_said_of_messages_that_were_acked() -> None:
    world = World(2, presets.lan())
    a, _, c = world.join("a", "b", "c")
    a.send([b"one", b"two"], to=c)
    world.settle()
    c.crash()
    world.run_until(lambda: a.view is not None and c.me not in a.view, 10.0)
    assert told(a) == []


@pytest.mark.parametrize("size", [200_000, 500_000])
def test_a_large_message_counts_once(size: int) -> None:
    world = World(3, presets.lan())
    a, _, c = world.join("a", "b", "c")
    c.crash()
    a.send(bytes(size), to=c)
    world.run_until(lambda: a.view is not None and c.me not in a.view, 10.0)
    assert [event.count for event in told(a)] == [1]
