"""Ports: what a part offers is checked when the stack is built, and costs nothing later."""

import gc
from random import Random
from typing import Protocol

import pytest

from ringcast import presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.ports import Ports
from ringcast.errors import ConfigError


class Doors(Protocol):
    """A port with a field, a method and a property."""

    count: int

    def open(self) -> None:
        """Open them."""
        ...

    @property
    def width(self) -> int:
        """How wide they are."""
        ...


class Half:
    """Has the field only."""

    def __init__(self) -> None:
        self.count = 1


class Whole(Half):
    """Has everything; its property must not be read before the stack is wired."""

    def open(self) -> None:
        """Nothing."""

    @property
    def width(self) -> int:
        """Not known yet."""
        raise AssertionError("read too early")


def test_a_part_that_lacks_members_of_a_port_is_refused_with_their_names() -> None:
    with pytest.raises(ConfigError, match="Half offers Doors and has no open, width:"):
        Ports().offer(Doors, Half())


def test_fields_of_an_object_count_as_well() -> None:
    ports, part = Ports(), Whole()
    ports.offer(Doors, part)
    assert ports[Doors] is part


def has_been_read_as_a_dict(owner: object) -> bool:
    """Whether `__dict__` of an object was asked for: then CPython looks its attributes up slowly.
    Before that its fields lie in the object, and the collector sees no dict with their names."""
    dicts = [found for found in gc.get_referents(owner) if type(found) is dict and found]
    return any(
        all(isinstance(name, str) and getattr(owner, name, None) is field for name, field in items)
        for items in (found.items() for found in dicts)
    )


def test_a_dict_that_was_read_is_noticed() -> None:
    owner = Half()
    assert not has_been_read_as_a_dict(owner)
    assert owner.__dict__ == {"count": 1}
    assert has_been_read_as_a_dict(owner)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_building_a_stack_reads_no_dict_of_its_parts(name: str) -> None:
    stack = presets.named(name).build(Peer(Address(1), "one", "one"), "group", Random(1))
    slow = [type(part).__name__ for part in (stack, *stack.parts) if has_been_read_as_a_dict(part)]
    assert slow == []
