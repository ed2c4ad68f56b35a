"""Every timer that a part sets is declared, and every declared one is set somewhere."""

import re
from pathlib import Path

import pytest

from ringcast.core.stack import registry, timer_register
from ringcast.core.stack.part import Part
from ringcast.core.stack.timer_register import all_declared_timers, declare_timer, declared_timer
from ringcast.core.stack.timers import Timers
from ringcast.errors import ConfigError
from ringcast.sim.swarm.run import record_seed

SOURCE = Path(timer_register.__file__).parents[2]
SET = re.compile(r'timers\.set(?:_earlier)?\(\s*[\w.]+, "([^"]+)"')
CONSTANTS = {"tick", "ack", "pace", "repair", "tail"}
"""Names that several parts share as constants."""


def names_in_source() -> set[str]:
    pure = [path for area in ("core", "layers", "control", "services") for path in files(area)]
    return {name for path in pure for name in SET.findall(path.read_text())} | CONSTANTS


def files(area: str) -> list[Path]:
    return sorted((SOURCE / area).rglob("*.py"))


def test_the_names_in_the_source_are_those_that_are_declared() -> None:
    assert {timer.name for timer in all_declared_timers()} - {"#"} == names_in_source()


def test_every_timer_that_a_group_sets_is_declared_for_the_role_that_sets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: set[tuple[str, str]] = set()

    def noted(self: Timers[Part], owner: Part, name: str, at: float) -> None:
        seen.add((owner.role_name, name))
        real(self, owner, name, at)

    real = Timers.set
    monkeypatch.setattr(Timers, "set", noted)
    for seed in range(3):
        record_seed(seed)
    assert [key for key in seen if declared_timer(*key) is None] == []
    assert len(seen) > 10


def test_a_role_has_one_timer_of_a_name() -> None:
    known = declared_timer("membership", "gather")
    assert known is not None
    assert declare_timer(known.role, known.name, known.length, known.about) == "gather"
    with pytest.raises(ConfigError, match="membership has a timer gather: Makes one view"):
        declare_timer("membership", "gather", "1", "Something else.")


def test_a_number_is_the_name_of_a_call() -> None:
    call = declared_timer("services", "17")
    assert call is not None
    assert call.unit == "s"
    assert declared_timer("services", "unknown") is None


def test_the_settings_that_timers_name_exist() -> None:
    named = [re.findall(r"\b([A-Z]\w+)\.(\w+)", timer.length) for timer in all_declared_timers()]
    settings = {setting for found in named for setting in found}
    assert len(settings) > 10
    for protocol, setting in sorted(settings):
        registration = registry.find(protocol)
        assert registration is not None, protocol
        assert hasattr(registration.spec, setting), f"{protocol}.{setting}"
