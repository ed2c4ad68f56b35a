"""Whom a member asks, and what it does when nobody answers."""

import random

import pytest

from ringcast import presets
from ringcast.control.discovery import ASK_MAX, PLACES_MAX, Discovery, DiscoveryPart, Sighting
from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.stack import Stack
from ringcast.core.wire.frames import Discover
from ringcast.errors import ConfigError
from ringcast.spec import StackSpec

HERE = "10.0.0.1:7800"
THERE = ("10.0.0.2:7800", "10.0.0.3:7800")


def started(discovery: Discovery) -> tuple[Stack, DiscoveryPart]:
    """A member that looks for its group."""
    spec = presets.tcp(when_alone="create").replace(discovery)
    stack = spec.build(Peer(Address(1), "me", HERE), "g", random.Random(1))
    stack.start(0.0)
    return stack, next(part for part in stack.parts if isinstance(part, DiscoveryPart))


def run(stack: Stack, until: float) -> None:
    """Do what is due until then."""
    while stack.deadline <= until and stack.closed is None and stack.view is None:
        stack.wake(stack.deadline)
    stack.env.now = max(until, stack.env.now)


def asked(stack: Stack) -> set[str]:
    """The places that were asked since the last time."""
    targets = {to for to, frame in stack.env.out.frames if isinstance(frame, Discover)}
    stack.env.out.frames.clear()
    return {to for to in targets if isinstance(to, str)}


def test_all_places_are_asked_but_the_own() -> None:
    stack, part = started(
        Discovery(multicast=False, seeds=("s:1", HERE), dns="name:7800", file="/d")
    )
    assert asked(stack) == {"s:1"}
    part.suggest("name:7800", Sighting((HERE, *THERE)))
    part.suggest("/d", Sighting(("10.0.0.9:1", HERE)))
    run(stack, 0.2)
    assert asked(stack) == {"s:1", *THERE, "10.0.0.9:1"}


def test_many_places_take_turns() -> None:
    stack, part = started(Discovery(multicast=False, file="/d", when_alone="wait"))
    places = tuple(f"10.0.1.{number}:7" for number in range(2 * ASK_MAX + 10))
    part.suggest("/d", Sighting(places))
    stack.wake(stack.deadline)
    first = asked(stack)
    assert len(first) == ASK_MAX
    run(stack, 0.5)
    assert asked(stack) == set(places)


def test_places_are_bounded() -> None:
    _, part = started(Discovery(multicast=False, file="/d"))
    part.suggest("/d", Sighting(tuple(f"10.0.1.1:{n}" for n in range(1, 5_000))))
    assert len(part.places) == PLACES_MAX


def test_no_member_creates_a_group_before_the_first_look_and_its_answers() -> None:
    stack, part = started(Discovery(multicast=False, file="/d", timeout=0.3))
    run(stack, 10.0)
    assert stack.view is None
    part.suggest("/d", Sighting((HERE, *THERE)))
    run(stack, 10.25)
    assert stack.view is None, "those who were suggested have had no time to answer"
    run(stack, 11.0)
    assert stack.view is not None


@pytest.mark.parametrize(
    ("sighting", "founds"),
    [
        (Sighting((HERE, *THERE)), True),
        (Sighting(THERE), False),
        (Sighting((), "the name is not known"), False),
    ],
)
def test_a_group_begins_where_the_name_leads(sighting: Sighting, founds: bool) -> None:
    stack, part = started(Discovery(multicast=False, dns="name:7800", timeout=0.1))
    part.suggest("name:7800", sighting)
    run(stack, 5.0)
    assert (stack.view is not None) == founds
    assert stack.closed is None
    part.suggest("name:7800", Sighting((HERE,)))
    run(stack, 6.0)
    assert stack.view is not None, "once the name leads here, the group can begin"


def test_a_directory_that_cannot_be_read_founds_nothing() -> None:
    stack, part = started(Discovery(multicast=False, file="/d", timeout=0.1))
    part.suggest("/d", Sighting((), "cannot be read: Stale file handle"))
    run(stack, 5.0)
    assert stack.view is None


def test_a_join_that_fails_says_what_was_tried() -> None:
    stack, part = started(
        Discovery(multicast=False, seeds=("s:1",), dns="name:7800", file="/d", when_alone="fail")
    )
    run(stack, 5.0)
    assert stack.closed is None, "nobody has looked yet"
    assert "the name name:7800 (no answer yet)" in part.tried
    part.suggest("name:7800", Sighting((), "the name is not known"))
    part.suggest("/d", Sighting((HERE, *(f"10.0.0.9:{n}" for n in range(1, 9)))))
    run(stack, 10.0)
    assert stack.closed == (
        "no group found: tried seeds s:1 and the name name:7800 (the name is not known) and the"
        " directory /d (10.0.0.9:1, 10.0.0.9:2, 10.0.0.9:3, 10.0.0.9:4, 10.0.0.9:5 and 3 more)"
    )


def test_a_member_alone_in_the_directory_is_told_so() -> None:
    _, part = started(Discovery(multicast=False, file="/d"))
    part.suggest("/d", Sighting((HERE,)))
    assert part.tried == "the directory /d (no other member there)"


def test_a_coordinator_asks_only_endpoints_outside_its_view() -> None:
    stack, part = started(Discovery(multicast=False, file="/d", timeout=0.1, merge_interval=1.0))
    part.suggest("/d", Sighting((HERE,)))
    run(stack, 1.0)
    assert stack.view is not None
    stack.env.out.frames.clear()
    part.suggest("/d", Sighting((HERE, *THERE)))
    stack.wake(stack.env.now + 2.0)
    assert asked(stack) == set(THERE)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"dns": "name"}, 'give "host:port"'),
        ({"dns": "name:70000"}, 'give "host:port"'),
        ({"refresh": 0.0}, "Discovery.refresh is 0"),
        ({"multicast": False}, "neither multicast nor seeds"),
        ({"seeds": (7,)}, "give a list, seeds="),
        ({"methods": ((),)}, "give a list, methods="),
        ({"dns": 7}, "dns is 7: give a text"),
        ({"interval": "9" * 5_000}, r"interval is '9{99}…: give a number"),
    ],
)
def test_what_is_wrong_is_said(settings: dict[str, object], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Discovery(**settings)  # type: ignore[arg-type]


def test_a_misspelt_when_alone_is_named_before_a_missing_place() -> None:
    with pytest.raises(ConfigError, match=r'when_alone is "wiat".*; did you mean wait\?'):
        presets.tcp(when_alone="wiat")


def test_the_former_name_and_value_of_when_alone_still_work() -> None:
    with pytest.warns(DeprecationWarning, match='write Discovery\\(when_alone="create"\\)'):
        assert Discovery(alone="found") == Discovery(when_alone="create")
    with pytest.warns(DeprecationWarning, match="create"):
        assert Discovery(when_alone="found").when_alone == "create"
    with pytest.warns(DeprecationWarning, match='write tcp\\(when_alone="wait"\\)'):
        assert presets.tcp(file="/d", alone="wait") == presets.tcp(file="/d", when_alone="wait")
    text = (
        presets.tcp(when_alone="create")
        .to_toml()
        .replace('when_alone = "create"', 'alone = "found"')
    )
    with pytest.warns(DeprecationWarning, match="create"):
        assert StackSpec.from_toml(text) == presets.tcp(when_alone="create")


def test_a_choice_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="give one of auto, create, wait, fail"):
        Discovery(when_alone="begin")
