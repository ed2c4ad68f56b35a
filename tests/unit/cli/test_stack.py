"""The stack that arguments describe."""

from argparse import ArgumentParser
from pathlib import Path

import pytest

from ringcast import ConfigError, StackSpec, presets
from ringcast.cli.stack import add_stack_arguments, chosen_stack
from ringcast.transports import Tcp, Udp


def chosen(*words: str) -> StackSpec:
    """The stack for these words on the command line."""
    parser = ArgumentParser()
    add_stack_arguments(parser)
    return chosen_stack(parser.parse_args(words))


def test_members_on_one_machine_need_no_words() -> None:
    assert chosen() == presets.loopback()


def test_a_port_or_seeds_choose_tcp() -> None:
    assert chosen("--port", "7800") == presets.tcp(port=7800)
    assert chosen("--seeds", "a:1, b:2,", "--bind", "10.0.0.7") == presets.tcp(
        seeds=["a:1", "b:2"], bind="10.0.0.7"
    )


def test_a_preset_with_seeds_and_an_interface() -> None:
    spec = chosen("--preset", "stable", "--seeds", "[::1]:7", "--bind", "eth0", "--port", "9")
    assert spec["Discovery"].values()["seeds"] == ("[::1]:7",)
    assert spec["transport"] == Udp(bind="eth0", port=9)


def test_a_file_with_seeds_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "stack.toml"
    path.write_text(presets.tcp(port=5).replace("NakAck4", capacity=7).to_toml())
    spec = chosen("--spec", str(path), "--seeds", "a:1")
    assert spec["NakAck4"].values()["capacity"] == 7
    assert spec["transport"] == Tcp(port=5)
    assert spec["Discovery"].values()["seeds"] == ("a:1",)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--preset", "wan"], "unknown preset wan"),
        (["--seeds", "nowhere"], '"nowhere" is not an endpoint'),
        (["--seeds", ","], "--seeds is empty"),
        (["--port", "70000"], "port is 70000"),
        (["--spec", "nowhere.toml"], "cannot read the spec"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        chosen(*words)


def test_names_and_directories_need_no_multicast_either() -> None:
    assert chosen("--file", "/d") == presets.tcp(file="/d")
    assert chosen("--dns", "svc", "--bind", "0.0.0.0") == presets.tcp(dns="svc", bind="0.0.0.0")
    spec = chosen("--dns", "svc")
    assert spec["Discovery"].values()["dns"] == "svc:7800"
    assert spec["Tcp"].values()["port"] == 7800
    assert chosen("--dns", "svc:9")["Tcp"].values()["port"] == 9
    assert chosen("--dns", "svc:9", "--port", "0")["Tcp"].values()["port"] == 0
    everything = chosen("--seeds", "a:1", "--dns", "svc:9", "--file", "/d", "--when-alone", "fail")
    assert everything == presets.tcp(["a:1"], dns="svc:9", file="/d", when_alone="fail")


def test_a_multicast_stack_can_be_given_other_ways_besides() -> None:
    discovery = chosen("--preset", "lan", "--file", "/d", "--dns", "svc:9")["Discovery"].values()
    assert (discovery["multicast"], discovery["file"], discovery["dns"]) == (True, "/d", "svc:9")
    assert chosen("--when-alone", "wait")["Discovery"].values()["when_alone"] == "wait"


def test_a_member_with_seeds_does_not_just_begin(tmp_path: Path) -> None:
    path = tmp_path / "stack.toml"
    path.write_text(presets.tcp(when_alone="create").to_toml())
    assert StackSpec.load(path)["Discovery"].values()["when_alone"] == "create"
    assert (
        chosen("--spec", str(path), "--seeds", "a:1")["Discovery"].values()["when_alone"] == "auto"
    )


def test_the_ways_survive_toml() -> None:
    spec = presets.tcp(["a:1"], dns="svc", file="/d", when_alone="wait")
    assert StackSpec.from_toml(spec.to_toml()) == spec


@pytest.mark.parametrize("word", ["--dns", "--file", "--seeds", "--bind", "--preset", "--spec"])
def test_an_empty_word_is_a_mistake(word: str) -> None:
    with pytest.raises(ConfigError, match=f"{word} is empty"):
        chosen(word, "")


def test_protocols_are_added_and_left_out() -> None:
    spec = chosen("--preset", "bulk", "--without", "SlowMembers", "--with", "Faults.loss=0.5")
    assert "slow" not in spec
    assert spec["Faults"].values()["loss"] == 0.5
    spec = chosen("--with", "SlowMembers.policy=skip", "--with", "SlowMembers.bound=3.5")
    assert {**spec["slow"].values()} == {**spec["slow"].values(), "policy": "skip", "bound": 3.5}
    spec = chosen("--preset", "bulk", "--with", "NakAck4.capacity=7")
    assert spec["NakAck4"] == presets.bulk()["NakAck4"].changed({"capacity": 7})
    with pytest.raises(ConfigError, match="names no setting"):
        chosen("--with", "SlowMembers=skip")
    with pytest.raises(ConfigError, match=r"no value: write --with Faults.loss=VALUE"):
        chosen("--with", "Faults.loss")
    with pytest.raises(ConfigError, match="--with is empty"):
        chosen("--with", "")
    with pytest.raises(ConfigError, match="there is no protocol Nonsense"):
        chosen("--with", "Nonsense")
    with pytest.warns(DeprecationWarning, match="SlowMembers"):
        assert "slow" not in chosen("--preset", "bulk", "--without", "Slow")


def test_changes_of_the_command_line_have_to_work_together_only() -> None:
    words = ["--preset", "bulk", "--without", "LargeMessages", "--set", "SlowMembers.policy=evict"]
    spec = chosen(*words, "--with", "Sequencer", "--set", "NakAck4.retain=True")
    assert "Sequencer" in spec
    words = ["--preset", "stable", "--with", "NakAck4", "--without", "Stability"]
    assert "stability" not in chosen(*words)
    with pytest.raises(ConfigError, match="--without is empty"):
        chosen("--without", "")
    with pytest.raises(ConfigError, match=r"NakAck4\.capacity is set twice: give one value"):
        chosen("--set", "NakAck4.capacity=1", "--set", "NakAck4.capacity=2")


def test_the_former_option_for_a_lone_member_still_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert chosen("--alone", "found") == chosen("--when-alone", "create")
    assert "write --when-alone create" in capsys.readouterr().err
