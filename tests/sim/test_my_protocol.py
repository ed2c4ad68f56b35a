"""The example package: a protocol of a user in stacks, TOML, the simulator and on the command
line."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ringcast import presets, protocols
from ringcast.cli.main import main
from ringcast.sim import World
from ringcast.spec import StackSpec

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "my_protocol"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as if pip had installed it."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    points = [
        EntryPoint(name, f"my_protocol:{name}", protocols.ENTRY_POINTS)
        for name in ("Seal", "Turns")
    ]
    monkeypatch.setattr(protocols, "entry_points", lambda group: points)


def sealed(key: str) -> StackSpec:
    return presets.lan().insert(protocols.named("Seal")(key=key))


def test_it_is_found_by_its_entry_point_and_goes_through_toml() -> None:
    spec = sealed("secret")
    assert StackSpec.from_toml(spec.to_toml()) == spec
    assert spec.protocols[0].role == "seal"
    assert "my_protocol.seal" in sys.modules


def test_messages_arrive_under_loss_and_view_changes() -> None:
    world = World(seed=4, spec=sealed("secret"), loss=0.2)
    a, b = world.join("a", "b")
    sent = [b"%d" % n for n in range(200)] + [b"x" * 200_000]
    a.send_many(sent)
    b.send(b"to one", to=a.me)
    world.join("c")
    b.crash()
    a.send(b"last")
    world.settle()
    assert world.check() == []
    assert [message.payload for message in a.delivered if message.sender == a.me][:201] == sent


def test_another_key_is_not_heard() -> None:
    world = World(seed=4, spec=sealed("secret"))
    a, _ = world.join("a", "b")
    (c,) = world.join("c", spec=sealed("other"))
    c.send(b"forged")
    world.run(seconds=1.0)
    assert not [m for m in a.delivered if m.sender == c.me]
    assert a.stats()["seal"] == {"broken": 1}


def test_the_swarm_puts_it_into_all_stacks(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seeds", "6", "--first", "40", "--jobs", "1"]
    assert main(["swarm", *arguments, "--with", "Seal.key=secret"]) == 0
    with_seal = capsys.readouterr().out
    assert ", 0 failed, " in with_seal
    assert "left out" not in with_seal
    assert main(["swarm", *arguments]) == 0
    assert capsys.readouterr().out.splitlines()[-1] != with_seal.splitlines()[-1]


def in_turns() -> StackSpec:
    return presets.lan().insert(protocols.named("Turns")())


def test_its_total_order_holds_while_a_coordinator_crashes_and_a_member_joins() -> None:
    world = World(seed=3, spec=in_turns(), loss=0.05)
    members = world.join("a", "b", "c")
    for number in range(50):
        for member in members:
            member.send(b"%d" % number)
        world.run(0.001)
    (late,) = world.join("d")
    members[0].crash()
    for member in (*members[1:], late):
        member.send([b"last", b"x" * 200_000])
    world.settle()
    assert world.check() == []
    first, second = ([(m.sender, m.seqno) for m in member.delivered] for member in members[1:])
    assert first == second
    assert len(first) == 156
    assert first[-6:] == [(m.sender, m.seqno) for m in late.delivered]


def test_the_swarm_checks_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seeds", "6", "--first", "60", "--jobs", "1"]
    assert main(["swarm", *arguments, "--with", "Turns"]) == 0
    assert ", 0 failed, " in capsys.readouterr().out
