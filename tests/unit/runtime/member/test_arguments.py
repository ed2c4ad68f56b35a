"""What callers hand in: a mistake is a sentence."""

import asyncio
from typing import Any

import pytest

import ringcast
from ringcast import presets, sync
from ringcast.core.model.address import Address
from ringcast.errors import ConfigError, LocalError
from ringcast.runtime.member.arguments import (
    NAME_MAX,
    UNBOUNDED_SECONDS,
    check_join,
    checked_target,
    checked_targets,
    checked_timeout,
)
from ringcast.transports import Memory


def test_a_timeout_is_seconds_or_none() -> None:
    assert checked_timeout(None) is None
    assert checked_timeout(2) == 2
    assert checked_timeout(-1.0) == 0.0
    assert checked_timeout(float("inf")) is None
    assert checked_timeout(UNBOUNDED_SECONDS) is None


@pytest.mark.parametrize("wrong", [float("nan"), "1", b"1", [1]])
def test_what_is_no_timeout(wrong: float) -> None:
    with pytest.raises(LocalError, match=r"timeout is .*: give seconds"):
        checked_timeout(wrong)
    with pytest.raises(ConfigError, match="timeout is"):
        checked_timeout(wrong, ConfigError)


@pytest.mark.parametrize("wrong", ["ann", [Address(1)], {}, 1.5])
def test_who_is_no_target(wrong: Address) -> None:
    with pytest.raises(TypeError, match="give the Address of one member"):
        checked_target(wrong)


def test_a_target_is_an_address_or_a_list_of_them() -> None:
    assert checked_target(Address(7)) == 7
    assert checked_targets(Address(7)) == [7]
    assert checked_targets((Address(7), Address(8))) == [7, 8]
    for wrong in ("ann", 1.5, [[Address(7)]], ["ann"]):
        with pytest.raises(TypeError, match=r"give (an|the) Address"):
            checked_targets(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"group": ""}, "group is empty"),
        ({"group": 5}, "group is 5: give a text"),
        ({"group": "\ud800"}, "not Unicode"),
        ({"name": "\ud800"}, "not Unicode"),
        ({"name": None}, "name is None"),
        ({"name": "é" * NAME_MAX}, "name has 510 bytes: give at most 255"),
        ({"spec": "lan"}, "give a StackSpec"),
        ({"backlog_bytes": -1}, "backlog_bytes is -1"),
        ({"backlog_bytes": "x"}, "backlog_bytes is 'x'"),
    ],
)
def test_what_no_member_can_be_made_of(change: dict[str, str], why: str) -> None:
    good = {"group": "g" * 10_000, "spec": presets.lan(), "name": "é" * 127, "backlog_bytes": 0}
    check_join(**good)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=why):
        check_join(**{**good, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("switch", ["receive", "views", "status", "state"])
def test_a_switch_is_true_or_false(switch: str) -> None:
    wrong: dict[str, Any] = {switch: "no"}
    spec = presets.loopback().replace(Memory())
    with pytest.raises(ConfigError, match=f"{switch} is 'no': give True or False"):
        sync.join("switches", spec, **wrong)
    with pytest.raises(ConfigError, match=f"{switch} is 'no': give True or False"):
        asyncio.run(ringcast.join("switches", spec, **wrong).__aenter__())
