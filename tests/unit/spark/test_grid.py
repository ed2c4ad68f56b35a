"""Grids: what a file means, the command that repeats a run, and a sentence for each mistake."""

import shlex
import tomllib
from argparse import ArgumentParser
from pathlib import Path

import pytest

from ringcast import presets
from ringcast.cli.commands import sim
from ringcast.errors import ConfigError
from ringcast.sim.trial import Trial
from ringcast.spark.sweep import Grid
from ringcast.spark.sweep.schedule import make_tasks

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweep.toml"

FULL = """
preset = ["lan", "stable"]
members = [3, 5]
messages = 100
size = [10, 1000]
batch = 8
senders = 2
still = 1
duration = 0.5
seeds = [1, 7]
timeout = 30
best = "p99"

[network]
loss = [0.0, 0.02]
delay = ["0.00001-0.0005", 0.002]
duplicate = 0.01
reorder = 0.02
corrupt = 0.03
bandwidth = 1e6
packet_loss = 0.001
mtu = 9000
downlink = 2e6
shared = 4e6
queue = 300000

[settings]
"multicast.capacity" = [16, 64]
Wire.mtu = 1400

[faults]
crash = "m3@0.1"
heal = 0.4
partition = ["m1,m2@0.2"]

[[bounds]]
p99 = 0.05
throughput = 10
where = { loss = 0.02, members = [3, 5], delay = 0.002 }

[[bounds]]
max = 1
"""


def grid(text: str) -> Grid:
    return Grid.parse(tomllib.loads(text))


def test_a_full_grid() -> None:
    full = grid(FULL)
    assert len(full.candidates) == 4
    assert len(full.scenes) == 16
    assert full.count == len(list(full.runs())) == 4 * 16 * 2
    assert [str(bound) for bound in full.bounds] == [
        "p99 at most 50 ms with loss 0.02, members 3 or 5, delay 0.002",
        "throughput at least 10 with loss 0.02, members 3 or 5, delay 0.002",
        "max at most 1 s",
    ]
    trial = full.trial(list(full.runs())[-1])
    assert (trial.members, trial.size, trial.loss, trial.seed) == (5, 1000, 0.02, 7)
    assert trial.delay == (0.002, 0.002)
    assert trial.spec == presets.stable().replace("NakAck3", capacity=64).replace("Wire", mtu=1400)
    assert [fault.action for fault in trial.faults] == ["crash", "partition", "heal"]


def test_an_empty_grid_is_one_run_of_lan() -> None:
    (run,) = grid("").runs()
    assert grid("").trial(run) == Trial(spec=presets.lan())


def test_the_example_is_a_grid() -> None:
    example = Grid.load(EXAMPLE)
    assert example.count == 72
    assert example.bounds


def from_command(command: str) -> Trial:
    """What `ringcast sim` would run."""
    program, name, *words = shlex.split(command)
    assert (program, name) == ("ringcast", "sim")
    parser = ArgumentParser()
    sim.add_arguments(parser)
    return sim.make_trial(parser.parse_args(words))


def test_every_run_is_repeated_by_one_command() -> None:
    full = grid(FULL)
    for run in full.runs():
        assert from_command(full.command(run)) == full.trial(run)


def test_the_command_of_a_stack_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "my stack.toml").write_text(presets.bulk().to_toml())
    (tmp_path / "grid.toml").write_text(
        'spec = "my stack.toml"\n[settings]\nSlowMembers.policy = ["wait", "skip"]\n'
        'Discovery.seeds = [["m1"], ["m1", "m2"]]'
    )
    found = Grid.load(tmp_path / "grid.toml")
    assert len(found.candidates) == 4
    for run in found.runs():
        assert from_command(found.command(run)) == found.trial(run)
    assert found.candidates[0].spec["Discovery"].values()["seeds"] == ("m1",)


def test_a_list_that_is_one_value() -> None:
    (candidate,) = grid('[settings]\nDiscovery.seeds = ["m1", "m2"]').candidates
    assert candidate.spec["Discovery"].values()["seeds"] == ("m1", "m2")


def test_combinations_that_no_stack_can_have_are_left_out() -> None:
    both = grid(
        "[settings]\nFailureDetector.interval = [0.1, 3.0]\nFailureDetector.timeout = [1.0, 20.0]"
    )
    assert len(both.candidates) == 3
    assert len(both.refused) == 1
    assert "FailureDetector.interval 3, FailureDetector.timeout 1" in both.refused[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lose = 1", "lose is not a key: a grid has preset"),
        ("[network]\nlose = 1", "network.lose is not a key: [network] has loss"),
        ("network = 3", "network is 3: write a table, [network]"),
        ("members = 'ten'", "members is 'ten': give a whole number"),
        ("members = [3, 'ten']", "members is 'ten': give a whole number each time"),
        ("members = true", "members is True: give a whole number"),
        ("members = 2.5", "members is 2.5: give a whole number"),
        ("members = []", "members is an empty list"),
        ("members = [3, 3]", "members has 3 twice"),
        ("members = 1", "members is 1: a sweep needs at least 2"),
        ("messages = 0", "messages is 0: a sweep needs at least 1"),
        ("size = -1", "size is -1: give 0 or more"),
        ("senders = 9", "senders is 9: give 1 to 4"),
        ("duration = -1", "duration is -1"),
        ("seeds = 0", "seeds is 0: give 1 to a million"),
        ("seeds = 'x'", "seeds is 'x': give how many seeds, or a list"),
        ("seeds = []", "seeds is an empty list"),
        ("timeout = 0", "timeout is 0: give a number above 0"),
        ("best = 'p98'", 'best is "p98": give p50, p99'),
        ("preset = 'wan'", "unknown preset wan"),
        ("preset = 3", "preset is 3: give a text"),
        ("spec = 'nowhere.toml'", "cannot read the spec nowhere.toml"),
        ("[network]\nloss = 7", "loss is 7: give a chance"),
        ("[network]\nloss = nan", "network.loss is nan: give a number"),
        ("[network]\ndelay = 'soon'", 'delay is "soon": give seconds'),
        ("[network]\ndelay = [0.1, '0.1-0.1']", "network.delay has 0.1 twice"),
        ("[network]\nbandwidth = 0", "bandwidth is 0"),
        (
            "[settings]\ncapacity = 3",
            'settings.capacity is not a setting: name its protocol, "NakAck4',
        ),
        ("[settings]\nNakAck5.capacity = 3", "settings.NakAck5.capacity: the stack has no NakAck5"),
        ("[settings]\nNakAck4.size = 3", "settings.NakAck4.size: NakAck4 has no setting size"),
        ("[settings]\nNakAck4.capacity = [1, 'x']", "settings.NakAck4.capacity: NakAck4.capacity"),
        ("[settings]\nNakAck4.capacity = [1, -4]", "settings.NakAck4.capacity: NakAck4.capacity"),
        ("[settings]\nNakAck4.capacity = []", "settings.NakAck4.capacity is an empty list"),
        ("[settings]\nNakAck4.a.b = 1", "settings.NakAck4.a is {'b': 1}: give a value"),
        ("[settings]\n'Wire.mtu' = 900\nWire.mtu = 901", "settings.Wire.mtu is there twice"),
        (
            "preset = ['lan', 'stable']\n[settings]\nNakAck4.capacity = 16",
            "settings.NakAck4.capacity of stable: the stack has no NakAck4",
        ),
        ("[faults]\nfall = 'm1@1'", "faults.fall is not a key"),
        ("[faults]\ncrash = 'm1'", "crash m1 has no time: write crash m1@0.5"),
        ("[faults]\ncrash = 'm9@1'", "there is no member m9"),
        ("[faults]\nheal = 'm1@1'", "heal m1@1 has members"),
        ("[faults]\ncrash = true", "faults.crash is True: give members and a time"),
        ("bounds = 3", "bounds is 3: write a table"),
        ("[bounds]\np98 = 1", "bounds.p98 is not a key: [bounds] has p50, p99"),
        ("[bounds]\np99 = 'fast'", "bounds.p99 is 'fast': give a number"),
        ("[bounds.where]\nloss = 0.0", "bounds.where stands alone"),
        ("[bounds]\np99 = 1\nwhere = 3", "bounds.where is 3: write a table"),
        ("[bounds]\np99 = 1\nwhere = { lose = 3 }", "bounds.where.lose is not a key"),
        (
            "[network]\nloss = [0.0, 0.02]\n[bounds]\np99 = 1\nwhere = { loss = 0.03 }",
            "bounds.where.loss is 0.03, and the grid has no such run: its loss is 0, 0.02",
        ),
        ("seeds = 20_000", "the grid has 20,000 runs (1 settings × 1 networks and loads × 20,000"),
        ("seeds = 5\nruns_max = 4", "and runs_max is 4: shorten a list, or raise runs_max"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_key(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        grid(text)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_grid_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the grid .*nowhere.toml: No such file"):
        Grid.load(tmp_path / "nowhere.toml")
    path = tmp_path / "grid.toml"
    path.write_text("members = [")
    with pytest.raises(ConfigError, match=r"grid.toml is not TOML"):
        Grid.load(path)
    path.write_text("lose = 1")
    with pytest.raises(ConfigError, match=r"grid.toml: lose is not a key"):
        Grid.load(path)


# --- tasks ---------------------------------------------------------------------------------------


def trials(*members: int) -> list[Trial]:
    return [Trial(spec=presets.lan(), members=count) for count in members]


def test_the_longest_runs_come_first_and_alone() -> None:
    tasks = make_tasks(trials(*[4] * 100, 200, *[4] * 100, 100), cores=2)
    assert tasks[:2] == [[100], [201]]
    assert sorted(number for task in tasks for number in task) == list(range(202))


def test_short_runs_share_a_task() -> None:
    tasks = make_tasks(trials(*[3] * 1_000), cores=2)
    assert 16 <= len(tasks) <= 100
    assert {len(task) for task in tasks[:-1]} == {len(tasks[0])}


def test_no_core_is_without_a_task() -> None:
    assert len(make_tasks(trials(*[3] * 64), cores=16)) == 64
    assert make_tasks(trials(3), cores=16) == [[0]]
