"""Every setting explains itself: a sentence, a unit, and where its value came from."""

from pathlib import Path

import pytest

from ringcast import ConfigError, StackSpec, presets
from ringcast.core.reliable.ticker import ACK_SECONDS
from ringcast.core.stack.env import PACKET_BYTES_MAX
from ringcast.explain import ALIKE, Protocol, Setting, explain, sentences, to_text, to_toml, unit
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.protocols import named, names


def setting(protocols: tuple[Protocol, ...], protocol: str, name: str) -> Setting:
    """One setting of an explanation."""
    return next(s for p in protocols if p.name == protocol for s in p.settings if s.name == name)


@pytest.mark.parametrize("protocol", names())
def test_every_setting_has_a_sentence_and_every_number_a_unit(protocol: str) -> None:
    spec = named(protocol)
    values, abouts = spec().values(), sentences(spec)
    for name, value in values.items():
        assert abouts[name].endswith("."), name
        is_plain = isinstance(value, bool | str | tuple) or name in (
            "port",
            "multicast_port",
            "loss",
        )
        assert (unit(name, value, abouts[name]) == "") == is_plain, name


@pytest.mark.parametrize(
    ("preset", "protocol", "name", "expected"),
    [
        ("lan", "NakAck4", "capacity", "messages"),
        ("lan", "NakAck4", "max_bytes", "bytes"),
        ("lan", "NakAck4", "request_ranges", "gaps"),
        ("lan", "NakAck4", "early_frames", "datagrams"),
        ("lan", "Wire", "mtu", "bytes"),
        ("lan", "Membership", "retry_max", "seconds"),
        ("lan", "FailureDetector", "watchers", "members"),
        ("lan", "Udp", "multicast_port", ""),
        ("lan", "Udp", "ttl", "routers"),
        ("bulk", "LargeMessages", "attempts", "reminders"),
        ("tcp", "Tcp", "connections_max", "connections"),
    ],
)
def test_values_have_their_units(preset: str, protocol: str, name: str, expected: str) -> None:
    assert setting(explain(preset).protocols, protocol, name).unit == expected


def test_a_sentence_of_a_subclass_replaces_the_one_it_inherits() -> None:
    assert "table holds" in sentences(NakAck3)["capacity"]
    assert "ticks" in sentences(NakAck3)["xmit_interval"]


def test_where_the_values_of_a_preset_come_from() -> None:
    protocols = explain("tcp").protocols
    assert setting(protocols, "Discovery", "multicast").source == "preset"
    assert setting(protocols, "Discovery", "timeout").source == "default"


def test_where_the_values_of_a_file_come_from(tmp_path: Path) -> None:
    path = tmp_path / "stack.toml"
    lines = presets.lan().replace(capacity=10).to_toml().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("mtu")))
    protocols = explain(str(path)).protocols
    about = sentences(named("NakAck4"))["capacity"]
    assert setting(protocols, "NakAck4", "capacity") == Setting(
        "capacity", 10, "messages", "file", about
    )
    assert setting(protocols, "Wire", "mtu").source == "default"


def test_a_setting_says_when_it_has_to_be_the_same_at_all_members() -> None:
    protocols = explain("lan").protocols
    assert setting(protocols, "NakAck4", "retain").about.endswith(ALIKE)
    assert not setting(protocols, "NakAck4", "capacity").about.endswith(ALIKE)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_the_toml_with_its_comments_is_the_stack(name: str) -> None:
    text = to_toml(explain(name))
    assert StackSpec.from_toml(text) == presets.PRESETS[name]()
    assert "# Messages that may be outstanding" in text or name == "stable"


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("lan", ""),
        (
            "loopback",
            "sets timeout, interval, merge_interval of Discovery; sets interval of FailureDetector;"
            " sets bind of Udp",
        ),
        ("stable", "has Flow besides; has NakAck3 instead of NakAck4; has Stability besides"),
        (
            "bulk",
            "has LargeMessages besides; has Pacing besides; sets max_bytes, request_messages,"
            " flight_bytes, retain of NakAck4; has SlowMembers besides",
        ),
    ],
)
def test_how_presets_differ_from_lan(name: str, differs: str) -> None:
    assert explain(name).differs == differs


def test_what_a_stack_lacks_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stack.toml"
    path.write_text(presets.lan().without("Fragment").to_toml())
    assert explain(str(path)).differs == "has no Fragment"


def test_the_text_fits_and_has_everything() -> None:
    text = to_text(explain("bulk"), width=72)
    assert max(map(len, text.splitlines())) <= 72
    assert "Promises order, and every message to all that keep up" in text
    assert "  retain = false  (preset)" in text
    assert "  max_message = 256,000,000 bytes  (default)" in text
    assert '  multicast = "239.77.7.7"  (default)' in text
    assert "  seeds = none  (default)" in text


def test_bulk_says_which_acks_there_are_besides_one_per_large_message() -> None:
    words = " ".join(to_text(explain("bulk")).split())
    assert "Each receiver acks a message once" in words
    assert "A larger one costs an ack for each half of the window" in words
    assert (
        f"datagrams are packets (up to {PACKET_BYTES_MAX:,} bytes), receivers also ack what has"
        f" arrived, every {ACK_SECONDS * 1_000:.0f} ms at most" in words
    )


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown preset wan: choose one of lan, loopback, tcp"):
        explain("wan")
    with pytest.raises(ConfigError, match=r"cannot read the spec nowhere\.toml"):
        explain("nowhere.toml")
