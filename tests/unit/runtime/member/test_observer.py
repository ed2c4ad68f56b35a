"""Several observers of one member, as one."""

from collections.abc import Sequence

import pytest

from ringcast.core.model.events import Event
from ringcast.core.stack.stack import Stack
from ringcast.runtime.member.observer import together
from tests.unit.runtime.lone import lone_stack


class Notes:
    """An observer that notes what it is told, and may refuse to begin."""

    def __init__(self, told: list[str], name: str, fails: bool = False) -> None:
        self._told, self._name, self._fails = told, name, fails

    def begin(self, stack: Stack) -> None:
        if self._fails:
            raise ValueError(self._name)
        self._told.append(f"begin {self._name}")

    def taken(self, events: Sequence[Event]) -> None:
        self._told.append(f"taken {self._name}")

    def settled(self, is_blocked: bool) -> None:
        self._told.append(f"settled {self._name}")

    def end(self) -> None:
        self._told.append(f"end {self._name}")


def test_all_are_told_in_their_order() -> None:
    told: list[str] = []
    both = together([Notes(told, "a"), Notes(told, "b")])
    assert both is not None
    both.begin(lone_stack())
    both.taken(())
    both.settled(False)
    both.end()
    assert told == [
        f"{what} {who}" for what in ("begin", "taken", "settled", "end") for who in "ab"
    ]


def test_when_one_cannot_begin_the_others_end() -> None:
    told: list[str] = []
    both = together([Notes(told, "a"), Notes(told, "b", fails=True)])
    assert both is not None
    with pytest.raises(ValueError, match="b"):
        both.begin(lone_stack())
    assert told == ["begin a", "end a"]


def test_one_alone_is_itself_and_none_is_none() -> None:
    only = Notes([], "a")
    assert together([only]) is only
    assert together([]) is None
