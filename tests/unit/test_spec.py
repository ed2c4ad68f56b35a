"""Stacks that cannot work are refused when they are written down, with what to change."""

from collections.abc import Callable
from typing import Any

import pytest

from ringcast import presets
from ringcast.control.stability import Stability
from ringcast.errors import ConfigError
from ringcast.layers.fragment.layer import Fragment
from ringcast.layers.large import LargeMessages
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.sequencer import Sequencer
from ringcast.layers.unicast import Unicast
from ringcast.layers.wire import Wire
from ringcast.spec import StackSpec
from ringcast.transports import Tcp, Udp


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: presets.lan().replace(Wire(mtu=65_001)), "Wire.mtu is 65,001: give up to 65,000"),
        (
            lambda: presets.tcp(when_alone="create").replace(Udp(), Wire(mtu=70_000)),
            "Wire.mtu is 70,000: give up to 65,000",
        ),
        (lambda: Wire(mtu=511), "Wire.mtu is 511: give 512 to"),
        (lambda: Wire(mtu=1_000_001), "Wire.mtu is 1000001: give 512 to"),
        (lambda: presets.lan().insert(Stability()), "Stability needs a table"),
        (
            lambda: presets.lan().replace(NakAck3()),
            "NakAck3 needs rounds of stability",
        ),
        (lambda: StackSpec(NakAck4(), Unicast()), "the stack has nothing for wire"),
        (lambda: StackSpec(NakAck4(), Fragment()), "Fragment stands below NakAck4"),
        (lambda: StackSpec(NakAck4(), NakAck4()), "fill the same place"),
        (lambda: StackSpec(LargeMessages(), *presets.lan().protocols[1:]), "use Fragment"),
    ],
)
def test_what_cannot_work_is_refused(make: Callable[[], object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()


def test_who_goes_from_tcp_to_udp_gets_datagrams_that_fit() -> None:
    spec = presets.tcp(when_alone="create").replace(Udp(multicast=""))
    assert spec["wire"] == Wire()
    kept = presets.tcp(when_alone="create").replace(Wire(mtu=1_400)).replace(Udp())
    assert kept["wire"].values()["mtu"] == 1_400


def test_a_stream_carries_larger_datagrams() -> None:
    for spec in (presets.tcp(when_alone="create"), presets.lan().replace(Wire(mtu=100_000), Tcp())):
        assert spec["wire"].values()["mtu"] in (520_000, 100_000)


def test_several_changes_have_to_work_together_only() -> None:
    ordered = presets.bulk().changed(
        without=["LargeMessages"],
        insert=[Sequencer()],
        settings={"NakAck4.retain": True, "SlowMembers.policy": "evict"},
    )
    assert ordered["Sequencer"] == Sequencer()
    assert ordered["multicast"].values()["retain"]
    acked = presets.stable().changed(without=["Stability"], insert=[NakAck4()])
    assert [part.role for part in acked][:2] == ["fragment", "flow"]
    with pytest.raises(ConfigError, match=r"set NakAck4\.retain to True"):
        presets.bulk().insert(Sequencer())
    with pytest.raises(ConfigError, match="the stack has no Sequencer"):
        presets.lan().changed(without=["Sequencer"], insert=[Sequencer()])


@pytest.mark.parametrize(
    ("full", "sentence"),
    [
        ("NakAck4", 'name one of NakAck4, for example "NakAck4.capacity"'),
        ("NakAck4.", 'name one of NakAck4, for example "NakAck4.capacity"'),
        ("xmit_interval", 'name its protocol, "NakAck4.xmit_interval"'),
        (".x", 'name its protocol, for example "NakAck4.capacity"'),
        ("", 'name its protocol, for example "NakAck4.capacity"'),
    ],
)
def test_a_name_that_is_not_a_setting_is_answered_with_one(full: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        presets.lan().with_settings({full: 1})
    assert str(refused.value) == f'"{full}" is not a setting: {sentence}'


@pytest.mark.parametrize("text", ["a\x00b\x1f\x7f", 'tab\t "quoted" \\ line\n\r', "ü—😀"])
def test_any_text_goes_through_toml(text: str) -> None:
    spec = presets.lan().replace("Discovery", file=text)
    assert StackSpec.from_toml(spec.to_toml()) == spec


@pytest.mark.parametrize("value", ["[" * 3_000 + "]" * 3_000, "{a=" * 3_000 + "1" + "}" * 3_000])
def test_a_deeply_nested_file_is_refused_with_a_sentence(value: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        StackSpec.from_toml(f"[Udp]\nbind = {value}")


@pytest.mark.parametrize("word", [r"\u001b[2J\nforged", "x" * 100_000])
@pytest.mark.parametrize(
    "text",
    [
        '["{}"]',
        '[NakAck4]\n"{}" = 1',
        '"{}" = 1',
        '[Wire]\nchecksum = "{}"',
        '[Discovery]\ndns = "{}"',
        '[Discovery]\nwhen_alone = "{}"',
        '[SlowMembers]\npolicy = "{}"',
        '[Tcp]\ntls_certificate = "{}"',
        "[Discovery]\nseeds = [" + "1, " * 10_000 + "]",
    ],
)
def test_a_hostile_file_is_refused_with_a_sentence_that_can_be_shown(text: str, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StackSpec.from_toml(text.replace("{}", word))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2_100


def test_a_number_with_thousands_of_digits_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match="not TOML"):
        StackSpec.from_toml(f"[Wire]\nmtu = {'1' * 5_000}")


@pytest.mark.parametrize(
    ("wrong", "what"),
    [(NakAck4, r"NakAck4 is a class: write NakAck4\(\)"), (3, "3 is not a protocol: give one")],
)
def test_only_protocols_are_put_into_a_stack(wrong: Any, what: str) -> None:
    """replace() left out silently what is not a protocol, and changed nothing."""
    for change in (presets.lan().insert, presets.lan().replace):
        with pytest.raises(ConfigError, match=what):
            change(wrong)
