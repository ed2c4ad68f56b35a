"""What a soak says of what it found."""

from pathlib import Path

from ringcast.soak.plan import SoakPlan
from ringcast.soak.run import SoakOutcome
from ringcast.soak.vitals import Vitals


def outcome(tmp_path: Path, **digests: str) -> SoakOutcome:
    return SoakOutcome(SoakPlan(out=tmp_path), Vitals(()), views=3, digests=digests, writers=9)


def test_states_that_are_equal_are_said_to_be(tmp_path: Path) -> None:
    clean = outcome(tmp_path, a="1f", b="1f")
    assert clean.is_clean
    assert "9 members wrote to a state, equal at 2" in clean.verdict()


def test_states_that_differ_are_a_problem(tmp_path: Path) -> None:
    broken = outcome(tmp_path, a="1f", b="2e")
    assert not broken.is_clean
    assert broken.verdict().startswith("BROKEN: 1 problem; ")
    assert broken.problems() == ["the replicated states differ: a 1f, b 2e"]
