"""A user's own cipher for every datagram, in simulated groups: a file, and one registration."""

from dataclasses import dataclass

import pytest

from ringcast import presets
from ringcast.closed.keys import KEY_SIZE
from ringcast.core.model.address import Address
from ringcast.core.stack import registry
from ringcast.core.wire.seal import BodySeal
from ringcast.errors import ConfigError, LocalError, WrongKey
from ringcast.protocols import Spec, protocol
from ringcast.sim import World
from ringcast.spec import StackSpec


class ShiftSeal(BodySeal):
    """Each byte moved on by the key, behind the key's check byte."""

    overhead = 1

    def __init__(self, key: int) -> None:
        self._key = key

    def encrypt(self, head: bytes, body: bytes) -> bytes:
        return bytes((self._key, *((byte + self._key) % 256 for byte in body)))

    def decrypt(self, head: bytes, body: bytes) -> bytes:
        if body[:1] != bytes((self._key,)):
            raise WrongKey("another key")
        return bytes((byte - self._key) % 256 for byte in body[1:])


@dataclass(frozen=True, kw_only=True)
class Shift(Spec):
    """Moves every byte."""

    key: int = 3
    """By how much."""

    def make_seal(self, group: str, me: Address) -> ShiftSeal:
        """The seal of one life of a member."""
        return ShiftSeal(self.key)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered for one test."""
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_order", [])
    protocol(role="cipher", over="transport", shared=False)(Shift)


def shifted(key: int = 3) -> StackSpec:
    return presets.lan().insert(Shift(key=key))


def test_a_group_works_under_loss_and_view_changes() -> None:
    world = World(seed=4, spec=shifted(), loss=0.1)
    a, b = world.join("a", "b")
    sent = [b"%d" % n for n in range(200)] + [b"x" * 200_000]
    a.send_many(sent)
    world.join("c")
    b.crash()
    world.settle()
    assert world.check() == []
    assert [message.payload for message in a.delivered] == sent
    assert world.lost["unreachable"] == 0


def test_single_frames_can_be_lost() -> None:
    world = World(seed=4, spec=shifted())
    a, b = world.join("a", "b")
    rule = world.drop(lambda frame: frame.kind == "DATA" and frame.target == "b")
    a.send(b"x")
    world.run(0.01)
    assert rule.count == 1
    assert not b.delivered


def test_members_with_another_key_or_none_do_not_hear_each_other() -> None:
    world = World(seed=4, spec=shifted())
    a, _ = world.join("a", "b")
    c = world.start("c", spec=shifted(key=4))
    d = world.start("d", spec=presets.lan())
    world.run(5.0)
    assert [len(member.view or ()) for member in (a, c, d)] == [2, 1, 1]
    assert a.stack.counters["dropped_wrong_key"] > 0
    assert a.stack.counters["dropped_unsealed"] > 0
    assert d.stack.counters["dropped_sealed"] > 0


def test_its_settings_go_through_toml() -> None:
    spec = shifted(key=9)
    assert spec["cipher"].values() == {"key": 9}
    assert StackSpec.from_toml(spec.to_toml()) == spec


def test_a_key_beside_it_is_refused() -> None:
    world = World(seed=4, spec=shifted(), key=bytes(range(KEY_SIZE)))
    with pytest.raises(ConfigError, match="Shift and a key would seal every datagram"):
        world.join("a")


def test_it_has_no_key_to_replace() -> None:
    (a,) = World(seed=4, spec=shifted()).join("a")
    with pytest.raises(LocalError, match="no key to replace"):
        a.use_keys(bytes(range(KEY_SIZE)))
