"""The live trace: what real members write down is what happened, and it costs them nothing else."""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ringcast import ConfigError, StackSpec, sync
from ringcast.layers.faults import Faults
from ringcast.trace.check import check
from ringcast.trace.live import LiveTrace
from ringcast.trace.schema import KINDS, Row, unsigned
from tests.runtime.support import (
    SOON,
    await_view,
    come_back,
    group_name,
    memory,
    numbered,
    running,
    take,
)
from tests.runtime.waiting import wait_until


@contextmanager
def traced(
    path: Path, count: int, spec: StackSpec | None = None
) -> Iterator[tuple[list[sync.Group], list[LiveTrace]]]:
    """Members of one group in one view, each with a trace."""
    name, groups, traces = group_name(), list[sync.Group](), list[LiveTrace]()
    with ExitStack() as stack:
        for number in range(count):
            trace = LiveTrace(path)
            group = sync.join(
                name, spec or memory(), name=f"m{number}", timeout=SOON, observer=trace
            )
            stack.callback(group.close)
            groups.append(group)
            traces.append(trace)
        for group in groups:
            await_view(group, count)
        yield groups, traces


def leave_all(groups: list[sync.Group], traces: list[LiveTrace]) -> None:
    """Everybody has everything, and leaves."""
    for group in groups:
        come_back(group)
    for group, trace in zip(groups, traces, strict=True):
        trace.vouch()
        group.leave(timeout=SOON)


def read(path: Path) -> list[Row]:
    """The rows of all members, addresses as members have them."""
    rows = []
    for file in sorted(path.glob("*.parquet")):
        for values in pq.read_table(file).to_pylist():
            for name in ("member", "view_by", "sender", "peer"):
                if values[name] is not None:
                    values[name] = unsigned(values[name])
            if values["members"] is not None:
                values["members"] = tuple(map(unsigned, values["members"]))
                values["names"] = tuple(values["names"])
            rows.append(Row(**values))
    return rows


def sums(rows: list[Row], kind: str) -> Counter[int]:
    """Messages of this kind, by member."""
    found = Counter[int]()
    for row in rows:
        if row.kind == kind:
            found[row.member] += row.count
    return found


def exchange(groups: list[sync.Group], messages: list[bytes]) -> None:
    """Everybody sends all of the messages, and takes those of all."""

    def send_all() -> None:
        for group in groups:
            for start in range(0, len(messages), 10):
                group.send_many(messages[start : start + 10], timeout=SOON)

    with running(send_all), ExitStack() as stack:
        for group in groups:
            total = len(messages) * len(groups)
            stack.enter_context(running(lambda group=group, n=total: drop(take(group, n))))  # type: ignore[misc]


def drop(_: object) -> None:
    """Nobody needs it."""


def test_what_members_did_under_loss_is_written_and_holds_every_guarantee(tmp_path: Path) -> None:
    with traced(tmp_path, 3, memory().insert(Faults(loss=0.2))) as (groups, traces):
        exchange(groups, numbered("x", 300))
        leave_all(groups, traces)
    rows = read(tmp_path)
    assert check(rows, skips=False) == []
    me = {int(group.me) for group in groups}
    assert sums(rows, "sent") == dict.fromkeys(me, 300)
    assert sums(rows, "delivered") == dict.fromkeys(me, 900)
    kinds = {row.kind for row in rows}
    assert kinds >= {"requested", "resent", "acked", "purged", "window", "view", "closed"}
    assert kinds <= set(KINDS)
    assert all(row.digest is not None for row in rows if row.kind in ("sent", "delivered"))


def test_a_gap_in_what_was_written_is_found(tmp_path: Path) -> None:
    with traced(tmp_path, 2) as (groups, traces):
        exchange(groups, numbered("x", 50))
        leave_all(groups, traces)
    rows = read(tmp_path)
    spoilt = next(row for row in rows if row.kind == "delivered" and (row.seqno or 0) > 1)
    assert check(rows, skips=False) == []
    assert check([row for row in rows if row is not spoilt], skips=False) != []


def test_large_messages_count_as_their_fragments(tmp_path: Path) -> None:
    with traced(tmp_path, 2) as (groups, traces):
        exchange(groups, [b"small", bytes(300_000), b"small"])
        leave_all(groups, traces)
    rows = read(tmp_path)
    assert check(rows, skips=False) == []
    first, second = sums(rows, "sent"), sums(rows, "delivered")
    assert all(count > 3 for count in first.values())
    assert second == dict.fromkeys(first, sum(first.values()))


def test_who_only_sends_has_a_trace_as_well(tmp_path: Path) -> None:
    trace = LiveTrace(tmp_path)
    group = sync.join(group_name(), memory(), receive=False, timeout=SOON, observer=trace)
    group.send_many(numbered("x", 20), timeout=SOON)
    group.leave(timeout=SOON)
    rows = read(tmp_path)
    assert sums(rows, "delivered") == sums(rows, "sent") == {int(group.me): 20}
    assert check(rows, skips=False) == []


def test_what_is_sent_in_a_view_is_noted_there_before_the_application_gets_there(
    tmp_path: Path,
) -> None:
    name, trace = group_name(), LiveTrace(tmp_path)
    behind = sync.join(name, memory(), name="behind", timeout=SOON, observer=trace)
    behind.send(b"early", timeout=SOON)
    with sync.join(name, memory(), name="other", timeout=SOON) as other:
        await_view(other, 2)
        wait_until(lambda: len(behind.view) == 2)
        behind.send(b"late", timeout=SOON)
        assert other.receive(timeout=SOON).payload == b"late"
        assert [m.payload for m in take(behind, 2)] == [b"early", b"late"]
    behind.leave(timeout=SOON)
    rows = read(tmp_path)
    sent = {row.seqno: row.view for row in rows if row.kind == "sent"}
    delivered = {row.seqno: row.view for row in rows if row.kind == "delivered"}
    assert sent == delivered
    assert len(set(sent.values())) == 2


def test_a_stall_names_the_member_that_caused_it(tmp_path: Path) -> None:
    with traced(tmp_path, 2, memory().replace(capacity=10)) as (groups, traces):
        quick, slow = groups
        with (
            running(lambda: quick.send_many(numbered("x", 30), timeout=SOON)),
            running(lambda: drop(take(quick, 30))),
        ):
            wait_until(lambda: quick.stats()["waits_for"] == ["m1"])
            assert len(take(slow, 30)) == 30
        leave_all(groups, traces)
    stalls = [row for row in read(tmp_path) if row.kind == "blocked"]
    assert int(slow.me) in {row.peer for row in stalls}
    assert {row.member for row in stalls} == {int(quick.me)}
    assert all(row.at >= (row.sent_at or 0) > 0 for row in stalls)


def test_a_trace_that_cannot_be_written_ends_and_the_member_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "trace"
    with caplog.at_level(logging.WARNING), traced(place, 2) as (groups, traces):
        shutil.rmtree(place)
        exchange(groups, numbered("x", 50))
        leave_all(groups, traces)
    assert "ends here, and the member goes on" in caplog.text


def test_a_member_that_leaves_under_load_promises_nothing(tmp_path: Path) -> None:
    with traced(tmp_path, 2) as (groups, _):
        groups[1].leave(timeout=SOON)
        groups[0].leave(timeout=SOON)
    closed = [row.member for row in read(tmp_path) if row.kind == "closed"]
    assert closed == [int(groups[0].me)], "who is alone in its view has all that was sent"


def test_a_member_that_is_closed_at_once_promises_nothing(tmp_path: Path) -> None:
    with traced(tmp_path, 1) as (groups, traces):
        assert groups[0].take(timeout=SOON), "the view"
        groups[0].send(b"not taken", timeout=SOON)
        traces[0].vouch()
        groups[0].close()
    rows = read(tmp_path)
    assert {row.kind for row in rows} >= {"view", "sent"}
    assert not [row for row in rows if row.kind == "closed"]
    assert check(rows, skips=False) == []


def test_a_trace_needs_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file"):
        sync.join(group_name(), memory(), observer=LiveTrace(tmp_path / "file"))
