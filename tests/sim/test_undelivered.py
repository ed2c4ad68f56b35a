"""Messages to one member that leaves the view are delivered, or their sender is told."""

from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.core.model.events import Undelivered
from ringcast.services.replies import Outcome
from ringcast.sim import Member, World
from ringcast.spec import StackSpec


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


def crash(world: World) -> None:
    world.members["c"].crash()


def leave(world: World) -> None:
    world.members["c"].leave()


def pause(world: World) -> None:
    world.members["c"].pause()


def cut_off(world: World) -> None:
    world.partition("ab", "c")


def cut_the_sender_off(world: World) -> None:
    world.partition("a", "bc")


@pytest.mark.parametrize("goes", [crash, leave, pause, cut_off, cut_the_sender_off])
@pytest.mark.parametrize("preset", [presets.lan, presets.stable, presets.bulk])
def test_whatever_parts_the_two_each_message_is_delivered_or_reported(
    preset: Callable[[], StackSpec], goes: Callable[[World], None]
) -> None:
    world = World(4, preset())
    a, _, c = world.join("a", "b", "c")
    c.busy()  # Its application takes nothing, so nothing is acked.
    for size in (10, 300_000, 10):
        a.send([bytes([size % 256]) * size], to=c)
    goes(world)
    world.run_until(lambda: a.view is not None and c.me not in a.view, 30.0)
    world.heal()
    if c.alive and goes is not pause:
        c.idle()
    world.settle(60.0)
    delivered = sum(message.sender == a.me for message in c.delivered)
    assert (delivered, sum(event.count for event in told(a))) in ((0, 3), (3, 3))
    assert world.check() == []


def test_a_call_to_a_member_that_goes_is_answered_for_it() -> None:
    world = World(5, presets.lan())
    a, _, c = world.join("a", "b", "c")
    c.pause()
    call = a.call(b"?", to=[c])
    world.run_until(lambda: call.done, 20.0)
    assert call.replies[c.me].outcome is Outcome.GONE
    assert told(a) == []
