"""Options of the multicasts, each shown by what it changes."""

from itertools import pairwise

import pytest

from ringcast import presets
from ringcast.core.model.events import Event, Undelivered
from ringcast.layers.flow.layer import Flow
from ringcast.layers.large import LargeMessages
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.sim import Member, World
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.network import Fate


class Targets:
    """Whom the DATA of a went to, in the order of sending."""

    def __init__(self) -> None:
        self.targets: list[str] = []

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        if parcel.source == "a" and "DATA" in {frame.kind for frame in parcel.frames}:
            self.targets += [to] if to else [name for name, _ in fates]

    def given(self, now: float, member: Member, event: Event) -> None:
        """What applications are given is of no interest here."""

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Nor is what is done to members."""


@pytest.mark.parametrize(("threshold", "acks"), [(8, 8), (1_024, 1)])
def test_a_receiver_acks_after_ack_threshold_messages_or_on_the_tick(
    threshold: int, acks: int
) -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(ack_threshold=threshold)))
    a, _ = world.join("a", "b")
    for _ in range(64):
        a.send(b"x")
        world.run(0.001)
    world.settle()
    assert world.frames["ACK"] == acks


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("unicast", {"b", "c"}), ("multicast", {"all"}), ("auto", {"all", "b", "c"})],
)
def test_a_retransmission_goes_where_answer_says(answer: str, expected: set[str]) -> None:
    targets = Targets()
    spec = presets.lan().replace(NakAck4(answer=answer))
    world = World(seed=1, spec=spec, observer=targets)
    a, b, c = world.join("a", "b", "c")
    rule = world.drop(lambda f: f.kind == "DATA")
    a.send(b"lost")
    world.run(0.001)
    rule.remove()
    targets.targets.clear()
    world.settle()
    assert len(b.delivered) == len(c.delivered) == 1
    assert targets.targets
    assert set(targets.targets) <= expected
    if answer == "auto":  # The first request is answered to its member, the second to the group.
        assert "all" in targets.targets


@pytest.mark.parametrize(("early_frames", "is_requested"), [(256, False), (0, True)])
def test_messages_of_a_view_that_is_not_installed_yet_are_parked(
    early_frames: int, is_requested: bool
) -> None:
    world = World(seed=1, spec=presets.lan().replace(NakAck4(early_frames=early_frames)))
    a, b = world.join("a", "b")
    c = world.start("c")
    rule = world.drop(lambda f: f.kind == "VIEW" and f.target == "c")
    world.run_until(lambda: b.view is not None and len(b.view) == 3, 10.0)
    a.send_many([b"early"] * 5)
    world.run(0.005)
    rule.remove()
    world.run(3.0)
    assert len(c.delivered) == 5
    assert (c.stack.counters["requested"] > 0) == is_requested
    assert (c.stack.counters["dropped_parking_full"] > 0) == is_requested
    assert world.check() == []


def test_large_messages_over_nakack3_are_skipped_one_by_one_and_reported() -> None:
    large = LargeMessages(receive_timeout=1.0, ack_timeout=0.5, attempts=10)
    world = World(seed=1, spec=presets.stable().insert(large))
    a, b, c = world.join("a", "b", "c")
    rule = world.drop(
        lambda f: f.kind == "DATA" and f.target == "c" and (2 in f.seqnos or 6 in f.seqnos)
    )
    sizes = [100, 200_000, 300, 200_000, 500]  # Seqnos 1, 2 to 5, 6, 7 to 10, 11.
    for size in sizes:
        a.send(bytes(size))
    world.run(2.0)
    assert [len(m.payload) for m in c.delivered] == [100]
    assert (c.skipped[0].first, c.skipped[0].last) == (2, 2)
    rule.remove()
    world.run(8.0)
    assert [len(m.payload) for m in c.delivered] == [100, 300, 200_000, 500]
    assert [len(m.payload) for m in b.delivered] == sizes
    told = [event.members for event in a.events if isinstance(event, Undelivered)]
    assert told == [(c.me,)]
    assert world.check() == []


def test_credits_bound_the_table_that_stability_purges() -> None:
    spec = presets.stable().replace(Flow(max_credits=10_000, max_block_time=1_000.0))
    world = World(seed=1, spec=spec.replace(NakAck3(max_bytes=50_000_000)))
    a, b, c = world.join("a", "b", "c")
    c.busy()
    a.send_many([bytes(1_000)] * 200)
    peaks: list[int] = []
    for _ in range(50):
        world.run(0.1)
        peaks.append(a.probe.nbytes)
    assert max(peaks) <= 2 * 10_000
    assert all(one == other for one, other in pairwise(peaks[10:]))
    c.idle()
    world.settle()
    assert len(b.delivered) == len(c.delivered) == 200
    assert a.probe.nbytes == 0
    assert world.check() == []
