"""The trace of a simulated group: what it says is what happened, fragments and views included."""

from pathlib import Path

import pytest

from ringcast import ConfigError, presets
from ringcast.sim import World
from ringcast.sim.trace import SimulatedTrace
from ringcast.sim.trial import Trial
from ringcast.sim.trial import run as run_trial
from ringcast.spec import StackSpec
from ringcast.trace.check import check
from ringcast.trace.rules import Rules, rules_of
from ringcast.trace.schema import Row
from ringcast.trace.table import read_rows

LARGE = 2_000_000


def counted(rows: list[Row], kind: str, member: int) -> int:
    """Messages of this kind at a member."""
    return sum(row.count for row in rows if (row.kind, row.member) == (kind, member))


def test_what_members_did_is_what_their_traces_say(tmp_path: Path) -> None:
    trace = SimulatedTrace(tmp_path)
    world = World(seed=3, spec=presets.lan(), loss=0.2, observer=trace)
    a, b, c = world.join("a", "b", "c")
    for number in range(100):
        a.send([b"%d" % number] * 5)
        b.send([b"x"] * 2)
        world.run(0.002)
    world.settle()
    trace.close(settled=True)
    rows = read_rows(tmp_path)
    assert check(rows, **rules_of(presets.lan())._asdict()) == []
    assert [counted(rows, "sent", m.me) for m in (a, b, c)] == [500, 200, 0]
    assert {counted(rows, "delivered", m.me) for m in (a, b, c)} == {700}
    assert {row.kind for row in rows} >= {"requested", "resent", "acked", "purged", "window"}
    assert sum(row.kind == "closed" for row in rows) == 3
    assert all(row.digest is not None for row in rows if row.kind in ("sent", "delivered"))


def test_a_window_that_is_full_is_noticed(tmp_path: Path) -> None:
    trace = SimulatedTrace(tmp_path)
    spec = presets.lan().replace("NakAck4", capacity=4)
    world = World(seed=3, spec=spec, delay=(0.01, 0.01), observer=trace)
    a, b = world.join("a", "b")
    a.send([b"x"] * 40)
    world.settle()
    trace.close(settled=True)
    blocked = [row for row in read_rows(tmp_path) if row.kind == "blocked"]
    assert blocked
    assert {(row.member, row.peer) for row in blocked} == {(a.me, b.me)}


@pytest.mark.parametrize("preset", ["lan", "stable", "bulk"])
def test_a_join_in_the_middle_of_a_large_message_leaves_a_clean_trace(
    preset: str, tmp_path: Path
) -> None:
    spec = presets.named(preset).replace(max_bytes=400_000)
    trace = SimulatedTrace(tmp_path)
    world = World(seed=1, spec=spec, bandwidth=10_000_000.0, observer=trace)
    a, b = world.join("a", "b")
    a.send(b"before")
    a.send(b"x" * LARGE)
    a.send(b"after")
    world.run_until(lambda: a.probe.high > 10, seconds=5.0)
    (d,) = world.join("d")
    world.settle()
    trace.close(settled=True)
    assert [len(message.payload) for message in b.delivered] == [6, LARGE, 5]
    assert LARGE in [len(message.payload) for message in d.delivered], "it gets the message whole"
    rows = read_rows(tmp_path)
    assert check(rows, **rules_of(spec)._asdict()) == []
    views = {row.view for row in rows if row.kind == "sent" and row.member == a.me and row.count}
    assert len(views) == 2, "some fragments were sent in the view before, and the rest after"


@pytest.mark.parametrize("victim", ["a", "b"])
@pytest.mark.parametrize("preset", ["lan", "bulk"])
def test_a_crash_in_the_middle_of_a_large_message_leaves_a_clean_trace(
    preset: str, victim: str, tmp_path: Path
) -> None:
    spec = presets.named(preset).replace(max_bytes=400_000)
    trace = SimulatedTrace(tmp_path)
    world = World(seed=1, spec=spec, bandwidth=10_000_000.0, loss=0.02, observer=trace)
    a, _, c = world.join("a", "b", "c")
    a.send(b"x" * LARGE)
    world.run_until(lambda: a.probe.high > 10, seconds=5.0)
    world.members[victim].crash()
    world.run(0.1)
    c.send(b"y" * LARGE)
    world.settle()
    trace.close(settled=True)
    assert check(read_rows(tmp_path), **rules_of(spec)._asdict()) == []


def test_the_application_may_lag_behind_fragments(tmp_path: Path) -> None:
    trace = SimulatedTrace(tmp_path)
    world = World(seed=1, spec=presets.lan(), observer=trace)
    a, b = world.join("a", "b")
    b.busy()
    a.send([b"small", b"x" * LARGE, b"small"])
    world.run(1.0)
    b.idle()
    world.settle()
    trace.close(settled=True)
    rows = read_rows(tmp_path)
    assert check(rows, **rules_of(presets.lan())._asdict()) == []
    own = sorted((r.pos or 0, r.count) for r in rows if (r.kind, r.member) == ("delivered", b.me))
    assert [pos for pos, _ in own] == [sum(n for _, n in own[:i]) for i in range(len(own))]


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        (presets.lan(), Rules(capacity=16_384, skips=False)),
        (presets.bulk(), Rules(waits=False, agrees=False)),
        (presets.lan().replace("NakAck4", retain=False, capacity=9), Rules(9, False, agrees=False)),
    ],
)
def test_what_is_owed_is_read_from_the_stack(spec: StackSpec, rules: Rules) -> None:
    assert rules_of(spec) == rules


def test_two_runs_do_not_go_to_one_place(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").touch()
    with pytest.raises(ConfigError, match="name another directory"):
        SimulatedTrace(tmp_path)


def test_no_two_messages_of_a_trial_are_alike(tmp_path: Path) -> None:
    trace = SimulatedTrace(tmp_path)
    trial = Trial(spec=presets.lan(), members=3, messages=60, size=20, batch=1, duration=1.0)
    run_trial(trial, trace)
    trace.close(settled=True)
    sent = [row for row in read_rows(tmp_path) if row.kind == "sent"]
    assert sum(row.count for row in sent) == 60
    assert len({row.digest for row in sent}) == len(sent) == 60
