"""The registry: places, flag bits, former names, ports."""

from dataclasses import dataclass

import pytest

from ringcast import presets, protocols
from ringcast.core.stack import registry
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Layer, Spec
from ringcast.core.stack.ports import Brake, Numbering, Ports
from ringcast.core.stack.registry import protocol
from ringcast.errors import ConfigError
from ringcast.protocols import NakAck3, NakAck4, Pacing, Stability
from ringcast.spec import StackSpec


@pytest.fixture(autouse=True)
def _keeps_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_former", dict(registry._by_former))
    monkeypatch.setattr(registry, "_order", [])


@dataclass(frozen=True, kw_only=True)
class Stamp(Spec):
    """A user's layer."""

    size: int = 3
    """Bytes that it adds."""

    def build(self, env: Env) -> Layer:
        return Layer(env)


def test_the_list_runs_from_the_top_of_the_ladder_to_the_transport() -> None:
    order = registry.order()
    ladder = ["large", "fragment", "flow", "multicast", "unicast", "faults", "wire"]
    assert [role for role in order if role in ladder] == ladder
    assert order[-1] == "transport"


@pytest.mark.parametrize(
    ("place", "above", "below"),
    [
        ({"over": "multicast", "under": "flow"}, "flow", "multicast"),
        ({"over": "fragment"}, "large", "fragment"),
        ({"under": "membership"}, "membership", "transport"),
    ],
)
def test_a_role_stands_where_it_says(place: dict[str, str], above: str, below: str) -> None:
    protocol(role="stamp", **place)(Stamp)  # type: ignore[arg-type]
    order = registry.order()
    assert order.index(above) < order.index("stamp") < order.index(below)
    assert Stamp().role == "stamp"


@pytest.mark.parametrize("role", ["transport", "multicast", "failure"])
def test_another_protocol_for_a_known_role_moves_nothing(role: str) -> None:
    before = registry.order()
    protocol(role=role, over="large")(Stamp)
    assert registry.order() == before
    presets.lan()


def test_roles_above_each_other_are_refused() -> None:
    protocol(role="stamp", over="large", under="wire")(Stamp)
    with pytest.raises(ConfigError, match="stand above each other"):
        registry.order()


@pytest.mark.parametrize("flags", [1, 4, 8, 256])
def test_a_flag_bit_that_is_taken_is_refused(flags: int) -> None:
    with pytest.raises(ConfigError, match="free bits are"):
        protocol(role="stamp", over="large", flags=flags)(Stamp)


def test_a_name_that_is_taken_is_refused() -> None:
    other = type("NakAck4", (Stamp,), {"__module__": "elsewhere"})
    with pytest.raises(ConfigError, match=r"has the name of ringcast.layers.multicast.nakack4"):
        protocol(role="stamp", over="large")(other)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("Failure", "FailureDetector"),
        ("Slow", "SlowMembers"),
        ("Large", "LargeMessages"),
        ("Pace", "Pacing"),
    ],
)
def test_a_former_name_works_and_warns(former: str, now: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{former} is now {now}"):
        kind = getattr(protocols, former)
    assert kind is getattr(protocols, now)
    text = presets.bulk().to_toml()
    with pytest.warns(DeprecationWarning, match=now):
        assert StackSpec.from_toml(text.replace(f"[{now}]", f"[{former}]")) == presets.bulk()
    with pytest.warns(DeprecationWarning, match=now):
        assert isinstance(presets.bulk()[former], kind)


@pytest.mark.parametrize(
    ("kind", "former", "now"),
    [
        (Pacing, "patience", "give_up"),
        (NakAck3, "park_frames", "early_frames"),
        (NakAck4, "park_frames", "early_frames"),
    ],
)
def test_a_former_setting_works_and_warns(kind: type[Spec], former: str, now: str) -> None:
    what = f"{kind.__name__}.{former} is now {now}"
    with pytest.warns(DeprecationWarning, match=what):
        made = kind(**{former: 7})
    assert made == kind(**{now: 7})
    with pytest.warns(DeprecationWarning, match=what):
        assert getattr(made, former) == 7
    spec = presets.bulk().changed(
        insert=[kind(), *([Stability()] if kind is NakAck3 else [])],
        without=["LargeMessages"],
    )
    with pytest.warns(DeprecationWarning, match=what):
        assert spec.replace(**{former: 7}) == spec.replace(**{now: 7})
    full = f"{kind.__name__}.{former}"
    with pytest.warns(DeprecationWarning, match=what):
        assert spec.with_settings({full: 7}) == spec.replace(**{now: 7})
    with pytest.warns(DeprecationWarning, match=what):
        assert StackSpec.from_toml(spec.to_toml().replace(f"\n{now} =", f"\n{former} =")) == spec
    with pytest.raises(ConfigError, match=f"give only {now}"):
        kind(**{former: 7, now: 7})
    with pytest.raises(ConfigError, match=f"{kind.__name__}.{now} is 'x': give"):
        kind(**{former: "x"})


def test_a_name_that_is_not_registered_is_not_an_attribute() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = protocols.Nonsense
    assert protocols.find("os:path") is None


def test_a_protocol_of_a_user_goes_through_toml_by_either_name() -> None:
    protocol(role="stamp", over="multicast")(Stamp)
    spec = presets.lan().insert(Stamp(size=7))
    assert StackSpec.from_toml(spec.to_toml()) == spec
    path = f'["{Stamp.__module__}:Stamp"]'
    assert StackSpec.from_toml(spec.to_toml().replace("[Stamp]", path)) == spec


def test_a_spec_that_is_not_registered_is_refused() -> None:
    with pytest.raises(ConfigError, match="Stamp is not a protocol: register it"):
        presets.lan().insert(Stamp())


def test_a_port_without_an_offer_is_named_by_its_role() -> None:
    with pytest.raises(ConfigError, match="the stack has nothing for multicast"):
        Ports()[Numbering]


def test_a_part_has_what_it_offers() -> None:
    with pytest.raises(ConfigError, match="object offers Brake and has no positions, release"):
        Ports().offer(Brake, object())
