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
    point = EntryPoint("Seal", "my_protocol:Seal", protocols.ENTRY_POINTS)
    monkeypatch.setattr(protocols, "entry_points", lambda group: [point])


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
