"""What a soak may be, and where it may write."""

from pathlib import Path

import pytest

from ringcast import ConfigError, StackSpec
from ringcast.soak.plan import Plan, prepare


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
        Plan(out=tmp_path, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_the_stack_is_written_down(transport: str, tmp_path: Path) -> None:
    plan = Plan(out=tmp_path / "soak", transport=transport)
    prepare(plan)
    assert StackSpec.load(plan.spec) == plan.stack()
    (plan.trace / "old.parquet").touch()
    prepare(plan)
    assert list(plan.trace.iterdir()) == []


def test_nothing_of_others_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ConfigError, match="not of a soak"):
        prepare(Plan(out=tmp_path))
    assert (tmp_path / "precious").exists()
