"""What a soak may be, and where it may write."""

from pathlib import Path

import pytest

from ringcast import ConfigError, StackSpec
from ringcast.protocols import Compress, Sequencer
from ringcast.soak.plan import SoakPlan, prepare
from ringcast.trace.rules import rules_of


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"minutes": 0.0}, "--minutes is 0"),
        ({"steady": 1}, "2 to 20 steady"),
        ({"guests": 0}, "1 to 20 guests"),
        ({"rate": 0}, "a rate of"),
        ({"loss": 0.9}, "--loss is 0.9"),
        ({"transport": "carrier"}, "--transport is carrier"),
    ],
)
def test_what_cannot_be_is_said(settings: dict[str, object], match: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=match):
        SoakPlan(out=tmp_path, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_the_stack_is_written_down(transport: str, tmp_path: Path) -> None:
    plan = SoakPlan(out=tmp_path / "soak", transport=transport)
    prepare(plan)
    assert StackSpec.load(plan.spec) == plan.stack()
    (plan.trace / "old.parquet").touch()
    prepare(plan)
    assert list(plan.trace.iterdir()) == []


def test_protocols_that_are_added_are_in_the_stack_and_are_checked(tmp_path: Path) -> None:
    plan = SoakPlan(out=tmp_path / "soak", added=(Sequencer(), Compress()))
    prepare(plan)
    assert "Sequencer" in StackSpec.load(plan.spec)
    assert "Compress" in StackSpec.load(plan.spec)
    assert rules_of(plan.stack()).ordered


def test_nothing_of_others_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ConfigError, match="not of a soak"):
        prepare(SoakPlan(out=tmp_path))
    assert (tmp_path / "precious").exists()


def test_a_member_may_get_a_port_of_its_own(tmp_path: Path) -> None:
    plan = SoakPlan(out=tmp_path, transport="udp")
    assert plan.spec_at(0) == plan.spec
    at_home = StackSpec.from_toml(plan.spec_at(0, "10.78.1.3").read_text())
    assert at_home["transport"].values()["bind"] == "10.78.1.3"
    stack = StackSpec.from_toml(plan.spec_at(7_801).read_text())
    assert stack["transport"].values()["port"] == 7_801
