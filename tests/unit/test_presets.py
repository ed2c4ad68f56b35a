"""Ready stacks: what they need to be told, and what they say when it is missing."""

from collections.abc import Callable

import pytest

from ringcast import ConfigError, presets, protocols
from ringcast.control.discovery import Discovery
from ringcast.spec import StackSpec


def choice(spec: StackSpec) -> str:
    discovery = spec["discovery"]
    assert isinstance(discovery, Discovery)
    return discovery.when_alone


def test_tcp_with_nothing_to_find_others_by_is_an_error_that_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r'give seeds=\["host:port"') as told:
        presets.tcp()
    assert "port=7800" in str(told.value)


def test_the_first_member_is_found_at_its_port() -> None:
    assert choice(presets.tcp(port=7800)) == "create"
    assert choice(presets.tcp(when_alone="create")) == "create"
    assert choice(presets.tcp(seeds=["10.0.0.1:7800"], port=7800)) == "auto"


def test_seeds_are_a_list_and_not_the_characters_of_a_text() -> None:
    with pytest.raises(ConfigError, match=r'give a list, seeds=\["10.0.0.1:7800"\]'):
        presets.tcp(seeds="10.0.0.1:7800")
    with pytest.raises(ConfigError, match="seeds"):
        Discovery(seeds="10.0.0.1:7800")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="seeds"):
        presets.tcp(seeds=[7800])  # type: ignore[list-item]


def test_every_preset_can_be_named() -> None:
    for name, make in presets.PRESETS.items():
        assert presets.named(name) == make()
        assert make.__doc__


@pytest.mark.parametrize(
    ("mistake", "meant"),
    [
        (lambda: presets.named("loopbak"), "loopback"),
        (lambda: presets.lan().replace("NakAck4", capcity=5), "capacity"),
        (lambda: presets.lan()["NakAk4"], "NakAck4"),
        (lambda: protocols.named("slowmember"), "SlowMembers"),
    ],
)
def test_a_word_that_is_misspelt_is_answered_with_the_closest(
    mistake: Callable[[], object], meant: str
) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {meant}"):
        mistake()


def test_lan_at_an_ipv6_address_multicasts_by_ipv6() -> None:
    for bind in ("fd00::1", "fe80::1%eth0"):
        udp = presets.lan(bind)["transport"]
        assert isinstance(udp, protocols.Udp)
        assert (udp.bind, udp.multicast) == (bind, presets.MULTICAST_IPV6)
    assert presets.lan("10.0.0.1") == presets.lan().replace("Udp", bind="10.0.0.1")


def test_what_is_no_address_and_settings_without_a_name_are_told() -> None:
    with pytest.raises(ConfigError, match=r"Udp\.bind is 5: give a text"):
        presets.lan(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"write SlowMembers\(policy=…\)"):
        protocols.SlowMembers("skip")  # type: ignore[call-arg]
