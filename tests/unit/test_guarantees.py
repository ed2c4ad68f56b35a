"""What a stack promises follows from its settings; every guarantee has its ways to break."""

import re
from pathlib import Path

import pytest

from ringcast import presets
from ringcast.control.slow_members import SlowMembers
from ringcast.guarantees import GUARANTEES, Promises, promises_of
from ringcast.layers.large import LargeMessages
from ringcast.sim import Trial
from ringcast.sim.trial import Fault, run
from ringcast.spec import StackSpec
from ringcast.trace.rules import rules_of
from ringcast.trace.violations import CAUSES

LAN, STABLE = presets.lan(), presets.stable()
DISCARDING = STABLE.replace("NakAck3", discard_delivered=True)


@pytest.mark.parametrize(
    ("spec", "given_up"),
    [
        (LAN, set()),
        (STABLE, set()),
        (LAN.replace("NakAck4", retain=False), {"agreement"}),
        (DISCARDING, {"agreement"}),
        (LAN.replace("NakAck4", loopback=False), {"loopback"}),
        (LAN.insert(LargeMessages()), {"complete"}),
        (LAN.insert(SlowMembers(policy="skip")), {"complete"}),
        (LAN.insert(SlowMembers(policy="evict")), set()),
    ],
    ids=lambda value: "",
)
def test_settings_give_up_what_their_documentation_says(
    spec: StackSpec, given_up: set[str]
) -> None:
    promises = promises_of(spec)
    defaults = Promises()._asdict()
    assert {name for name in defaults if getattr(promises, name) != defaults[name]} == given_up
    assert rules_of(spec).agrees == promises.agreement


def test_a_sequencer_promises_one_order() -> None:
    assert promises_of(LAN.with_total_order()) == Promises(total_order=True)
    assert rules_of(LAN.with_total_order()).ordered
    assert not rules_of(LAN).ordered


def test_the_documentation_of_the_audit_names_every_guarantee() -> None:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) >= set(GUARANTEES)


def test_every_guarantee_can_be_broken_and_every_cause_breaks_one() -> None:
    assert {cause.guarantee for cause in CAUSES.values()} == set(GUARANTEES)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_survivors_that_discard_what_they_delivered_may_differ(seed: int) -> None:
    """The simulator reported this as a violation, though the setting gives agreement up."""
    crashes = (
        Fault(at=0.5, action="crash", names=("m1",)),
        Fault(at=1.0, action="crash", names=("m3",)),
    )
    trial = Trial(
        spec=DISCARDING,
        members=5,
        messages=3_000,
        duration=2.0,
        loss=0.2,
        seed=seed,
        faults=crashes,
    )
    assert run(trial).violations == []
