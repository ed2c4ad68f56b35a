"""States of a run: equal where one gave it to the other, never missing beside one that has it."""

from collections.abc import Callable

import pytest

from ringcast import presets
from ringcast.services.state_requester import Stage
from ringcast.sim import Member, World
from ringcast.sim.swarm.kept_states import KeptStates


class Group:
    """Three members that have said something, and a newcomer with their state."""

    def __init__(self) -> None:
        self.world = World(1, presets.lan())
        self.replicas = KeptStates()
        self.a, self.b, self.c = (self.start(name) for name in "abc")
        self.world.run_until(lambda: self.world.united, 10.0)
        self.a.send([b"one", b"two"])
        self.world.settle()
        self.world.run(0.1)
        self.d = self.start("d")
        self.world.run_until(lambda: not self.replicas.searching, 10.0)
        self.b.send(b"three")
        self.world.settle()

    def start(self, name: str) -> Member:
        """A member with a replica."""
        member = self.world.start(name, state=True)
        self.replicas.add(member, self.world.now)
        return member


def test_a_newcomer_has_the_state_of_the_member_that_gave_it() -> None:
    group = Group()
    assert group.d.service.stage is Stage.TAKEN
    assert list(group.replicas.problems()) == []


def test_a_newcomer_searches_until_it_has_the_state() -> None:
    group = Group()
    group.d.restart()
    group.replicas.add(group.d, group.world.now)
    assert group.replicas.searching == ["d"]


def _lack_a_message(group: Group) -> None:
    group.d.service.hear = None


def _have_no_state(group: Group) -> None:
    group.d.service.requester.stage = Stage.NONE


def _fail(group: Group) -> None:
    group.d.service.requester.stage = Stage.FAILED


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_lack_a_message, "d: its state has 2 messages of 1, and that of a, which gave it"),
        (
            _have_no_state,
            "d: no member has one, but a had a state before and was in all of its views",
        ),
        (_fail, "d: it could not be had, but a had a state before and was in all of its views"),
    ],
)
def test_a_wrong_state_is_found(harm: Callable[[Group], None], words: str) -> None:
    group = Group()
    harm(group)
    group.a.send(b"four")
    group.world.settle()
    assert words in "; ".join(group.replicas.problems())


def test_those_that_did_not_stay_together_are_not_compared() -> None:
    group = Group()
    group.world.partition(["a", "b", "c"], ["d"])
    group.world.run(8.0)
    group.d.send(b"alone")
    group.world.settle()
    group.world.heal()
    group.world.run_until(lambda: group.world.united, 10.0)
    group.world.settle()
    assert list(group.replicas.problems()) == []
