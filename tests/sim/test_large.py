"""Large messages in whole groups: bursts, loss, a receiver that stands still and one that wakes
up."""

from collections import Counter, defaultdict
from random import Random

import pytest

from ringcast import presets
from ringcast.control.slow_members import SlowMembers
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, Progress, Undelivered
from ringcast.errors import TooLarge
from ringcast.layers.fragment.layer import Fragment, FragmentLayer
from ringcast.layers.large import LargeMessages, LargeMessagesLayer
from ringcast.layers.multicast.nakack4 import NakAck4, NakAck4Layer
from ringcast.layers.pacing import ASKS_PER_WINDOW, Pacing
from ringcast.sim import Member, World
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.network import Fate
from ringcast.spec import StackSpec

LARGE, SLOW = LargeMessages(), SlowMembers(policy="skip", bound=2.0)
HELD_BACK = Pacing().give_up + 1.25 * SLOW.bound
"""How long one that stands still holds the others up, at the most: see docs/large-messages.md."""
KEPT = LARGE.ack_timeout * (LARGE.attempts + 1)
"""How long the sender keeps anything after the last fragment, at the most."""


def bulk() -> StackSpec:
    """The preset, with its policy spelt out."""
    spec = presets.bulk()
    return spec.replace(LARGE, SLOW) if "slow" in spec else spec.replace(LARGE).insert(SLOW)


class Readers:
    """Compares what each application is given with what was sent, and keeps none of it."""

    def __init__(self, messages: list[bytes]) -> None:
        self.messages = messages
        self.given_to: defaultdict[str, list[int]] = defaultdict(list)
        """Per member the places of the messages that it was given; -1 for one that was never
        sent."""
        self.seqnos: list[int] = []
        """The seqnos of the messages, at all members that were given them."""

    def given(self, now: float, member: Member, event: Event) -> None:
        if isinstance(event, Batch):
            for payload in event.payloads:
                place = self.given_to[member.name][-1:] or [-1]
                left = range(place[0] + 1, len(self.messages))
                data = bytes(payload)  # A view would be compared byte by byte.
                found = next((n for n in left if self.messages[n] == data), -1)
                self.given_to[member.name].append(found)
            if member.name == "a":
                self.seqnos.append(event.last)

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        """Datagrams are of no interest here."""

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Nor is what is done to members."""


def skipped_by(member: Member, seqnos: list[int]) -> list[int]:
    """The places of the messages that a member was told it would not get."""
    return [
        place
        for place, seqno in enumerate(seqnos)
        if any(event.first <= seqno <= event.last for event in member.skipped)
    ]


def reported(member: Member) -> list[Undelivered]:
    return [event for event in member.events if isinstance(event, Undelivered)]


def burst(receivers: int, count: int, size: int, still: str, window: int = 64_000_000) -> None:
    """A burst at 1 % loss with one receiver that stands still, and then wakes up.

    window: bytes of the sender's window."""
    dice = Random(1)
    messages = [dice.randbytes(size) for _ in range(count)]
    later = [dice.randbytes(500_000), b"later", dice.randbytes(300_000)]
    readers = Readers([*messages, *later])
    spec = bulk().replace("NakAck4", max_bytes=window, flight_bytes=window)
    world = World(seed=3, spec=spec, loss=0.01, keep=False, observer=readers)
    a, *rest = world.join("a", *(f"r{n}" for n in range(receivers)))
    *moving, stone = rest
    is_busy = still == "busy"
    rule = world.drop(lambda f: not is_busy and f.target == stone.name and f.kind == "DATA")
    if is_busy:
        stone.busy()
    for message in messages:
        a.send(message)
    everything = list(range(count))
    world.run_until(lambda: all(len(m.delivered) == count for m in moving), HELD_BACK + 0.5)
    assert all(readers.given_to[member.name] == everything for member in [a, *moving])
    world.run(KEPT + 0.01)
    assert (a.probe.outstanding, a.probe.nbytes, a.blocked) == (0, 0, False)
    lacking = [readers.seqnos.index(event.seqno) for event in reported(a)]
    assert {event.members for event in reported(a)} <= {(stone.me,)}
    check_acks(world, count, len(moving))
    rule.remove()
    if is_busy:
        stone.idle()
    else:
        assert lacking == everything
    world.run(1.0)
    for message in later:
        a.send(message)
    world.run(1.0)
    assert skipped_by(stone, readers.seqnos) == lacking
    expected = [n for n in everything if n not in lacking] + [count, count + 1, count + 2]
    assert readers.given_to[stone.name] == expected
    assert world.check() == []


def check_acks(world: World, count: int, moving: int) -> None:
    """One ack a message and receiver. On top of that come those that were asked for: by a reminder,
    since one was lost or a message is not taken yet, and of the still one, on every tick."""
    asked = world.frames["UNACKED"] + world.frames["LAST"]
    assert 0 <= world.frames["WHOLE"] + world.frames["ACK"] - count * moving <= asked


@pytest.mark.parametrize("still", ["busy", "cut off"])
def test_one_still_receiver_costs_the_others_nothing_but_its_timeout(still: str) -> None:
    burst(receivers=20, count=4, size=3_000_000, still=still, window=8_000_000)


@pytest.mark.slow
def test_ten_times_20_mb_to_50_receivers_one_of_which_stands_still() -> None:
    burst(receivers=50, count=10, size=20_000_000, still="cut off")


def test_acks_are_messages_times_receivers_and_nothing_else() -> None:
    window = NakAck4(max_bytes=8_000_000, flight_bytes=8_000_000, retain=False)
    world = World(seed=3, spec=bulk().replace(window), keep=False)
    a, *receivers = world.join("a", *(f"r{n}" for n in range(20)))
    for n in range(5):
        a.send(Random(n).randbytes(3_000_000))
    world.settle()
    assert all(len(member.delivered) == 5 for member in receivers)
    assert world.frames["WHOLE"] == 5 * 20
    assert (world.frames["ACK"], world.frames["UNACKED"]) == (0, 0)
    # Flow control asks a few, and not all.
    assert (
        0
        < world.frames["CREDIT"]
        <= Pacing().asked * 5 * 3_000_000 / (Pacing().max_bytes / ASKS_PER_WINDOW)
    )
    assert world.check() == []


@pytest.mark.parametrize("size", [1_100_000, 1_900_000])
def test_a_message_that_fits_the_window_costs_one_ack(size: int) -> None:
    window = NakAck4(max_bytes=2_000_000, flight_bytes=2_000_000, retain=False)
    world = World(seed=3, spec=bulk().replace(window), keep=False)
    a, *receivers = world.join("a", "b", "c", "d")
    for _ in range(3):
        a.send(bytes(size))
    world.settle()
    assert all(len(member.delivered) == 3 for member in receivers)
    assert (world.frames["WHOLE"], world.frames["ACK"]) == (3 * len(receivers), 0)


def test_a_message_larger_than_the_window_costs_an_ack_for_each_half_of_it() -> None:
    spec = bulk().replace(NakAck4(max_bytes=1_000_000, retain=False))
    world = World(seed=3, spec=spec, keep=False)
    a, *receivers = world.join("a", *(f"r{n}" for n in range(5)))
    a.send(Random(1).randbytes(5_000_000))
    world.settle()
    assert world.frames["WHOLE"] == len(receivers)
    halves = 5_000_000 / (1_000_000 / 2)
    assert halves / 2 * len(receivers) <= world.frames["ACK"] <= halves * len(receivers)


@pytest.mark.slow
def test_200_mb_through_bulk_as_they_are() -> None:
    message = Random(1).randbytes(200_000_000)
    readers = Readers([message])
    spec = presets.bulk()
    world = World(seed=1, spec=spec, loss=0.001, keep=False, observer=readers, measure=True)
    a, *others = world.join("a", "b", "c", "d")
    view = memoryview(message)
    own: list[object] = []
    given = readers.given

    def look(now: float, member: Member, event: Event) -> None:
        given(now, member, event)
        if member is a and isinstance(event, Batch):
            own.extend(event.payloads)

    readers.given = look  # type: ignore[method-assign]
    a.send(view)
    world.settle()
    assert all(readers.given_to[member.name] == [0] for member in (a, *others))
    assert own[0] is view
    window = spec["multicast"].values()["max_bytes"]
    assert isinstance(window, int)
    assert a.memory.peak.sent <= len(message) + window + 60_000
    assert max(other.memory.peak.received for other in others) <= len(message) + window + 60_000
    done = [event.done for event in others[0].events if isinstance(event, Progress)]
    assert done == sorted(done)
    assert done[-1] == len(message)
    assert world.check() == []


# --- order and views -----------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["lan", "stable", "bulk"])
def test_small_large_small_arrive_in_that_order(preset: str) -> None:
    world = World(seed=5, spec=presets.PRESETS[preset](), loss=0.05)
    a, b, _c = world.join("a", "b", "c")
    messages = [b"1", Random(1).randbytes(5_000_000), b"3", Random(2).randbytes(100_000), b"5"]
    for message in messages:
        a.send(message)
    b.send(Random(3).randbytes(300_000), to=a)
    world.settle()
    assert [m.payload for m in b.delivered if m.sender == a.me] == messages
    assert [m.payload for m in a.delivered if m.sender == a.me][1] is messages[1]
    assert len(a.delivered) == 6
    assert world.check() == []


def test_one_that_joins_in_the_middle_of_a_message_gets_it_whole() -> None:
    spec = presets.lan().replace(NakAck4(max_bytes=500_000))
    world = World(seed=5, spec=spec, bandwidth=5_000_000.0)
    a, b = world.join("a", "b")
    message = Random(1).randbytes(3_000_000)
    a.send(message)
    world.run(0.1)
    layer = next(part for part in b.stack.parts if isinstance(part, FragmentLayer))
    assert 0 < layer.incomplete_bytes < len(message)
    (c,) = world.join("c")
    world.settle()
    assert [m.payload for m in c.delivered] == [m.payload for m in b.delivered] == [message]
    assert world.check() == []


@pytest.mark.parametrize("preset", ["lan", "stable", "bulk"])
def test_the_sender_dies_after_half_the_fragments_and_nothing_is_left(preset: str) -> None:
    spec = presets.PRESETS[preset]().replace(max_bytes=500_000)
    world = World(seed=5, spec=spec, bandwidth=5_000_000.0)
    a, b, c = world.join("a", "b", "c")
    a.send([b"before", Random(1).randbytes(3_000_000)])
    world.run(0.2)
    layers = [
        next(part for part in member.stack.parts if isinstance(part, FragmentLayer))
        for member in (b, c)
    ]
    assert all(layer.incomplete_bytes > 100_000 for layer in layers)
    a.crash()
    world.run_until(lambda: b.view is not None and len(b.view) == 2, 60.0)
    world.settle()
    assert [layer.incomplete_bytes for layer in layers] == [0, 0]
    assert [m.payload for m in b.delivered] == [m.payload for m in c.delivered] == [b"before"]
    assert world.check() == []


# --- what is given up ----------------------------------------------------------------------------


@pytest.mark.parametrize("stack", ["bulk", "lan"])
def test_small_messages_survive_a_path_that_is_cut_for_longer_than_the_timeout(stack: str) -> None:
    spec = presets.bulk() if stack == "bulk" else presets.lan().insert(LARGE)
    world = World(seed=1, spec=spec)
    a, b, c = world.join("a", "b", "c")
    rule = world.drop(lambda f: f.target == "c" and f.kind == "DATA")
    for _ in range(100):
        a.send(bytes(1_000))
        world.run(0.02)
    world.run(12.0)
    rule.remove()
    world.run(3.0)
    assert (len(b.delivered), len(c.delivered), c.skipped) == (100, 100, [])
    assert world.check() == []


def test_the_checker_finds_small_messages_that_are_given_up_in_silence() -> None:
    world = World(seed=1, spec=presets.bulk())
    a, _, c = world.join("a", "b", "c")
    rule = world.drop(lambda f: f.target == "c" and f.kind == "DATA")
    a.send(bytes(1_000))
    world.run(0.5)
    layer = next(part for part in c.stack.parts if isinstance(part, NakAck4Layer))
    layer.give_up(a.me, 1, 1, "for this test")
    rule.remove()
    world.run(1.0)
    (violation,) = world.check()
    assert "told nothing" in violation.text


def test_only_the_message_whose_time_is_over_is_freed_at_the_sender() -> None:
    spec = bulk().without("slow").replace(LargeMessages(receive_timeout=60.0))
    world = World(seed=1, spec=spec)
    a, b, c = world.join("a", "b", "c")
    rule = world.drop(lambda f: f.target == "c" and f.kind == "DATA")
    a.send(bytes(200_000))
    world.run(KEPT - 1.2)
    a.send(bytes(300_000))
    world.run(2.0)
    assert [event.members for event in reported(a)] == [(c.me,)]
    assert a.probe.nbytes >= 300_000
    rule.remove()
    world.run(3.0)
    assert [len(m.payload) for m in c.delivered] == [300_000]
    assert (len(b.delivered), len(reported(a)), a.probe.outstanding) == (2, 1, 0)
    assert world.check() == []


@pytest.mark.parametrize("stack", ["bulk", "stable"])
def test_each_message_is_given_up_at_its_own_time(stack: str) -> None:
    """With one timer per sender, each would wait for the timeouts of all before it."""
    large = LargeMessages(receive_timeout=2.0, ack_timeout=60.0)
    spec = presets.stable().insert(large)
    if stack == "bulk":
        spec = bulk().without("slow").replace(large)
    world = World(seed=1, spec=spec)
    a, b, c = world.join("a", "b", "c")
    holes = {2, 7, 12, 17, 22}  # Of the large messages 1-4, 6-9, 11-14, 16-19 and 21-24.
    world.drop(lambda f: f.kind == "DATA" and f.target == "c" and not holes.isdisjoint(f.seqnos))
    began = world.now
    for _ in holes:
        a.send_many([bytes(200_000), b"small"])
        world.run(0.2)
    times = list[float]()
    for count in range(1, 6):
        world.run_until(lambda n=count: len(c.delivered) >= n, 20.0)  # type: ignore[misc]
        times.append(world.now - began)
    assert times == pytest.approx([2.0, 2.2, 2.4, 2.6, 2.8], abs=0.05)
    reason = "it did not come within 2 seconds"
    assert {event.first for event in c.skipped if event.reason == reason} == holes
    assert (len(b.delivered), [m.payload for m in c.delivered]) == (10, [b"small"] * 5)
    assert world.check() == []


# --- bounds --------------------------------------------------------------------------------------


def test_a_burst_costs_messages_in_flight_and_not_messages_sent() -> None:
    message = Random(1).randbytes(2_000_000)
    spec = bulk().replace(NakAck4(retain=False, max_bytes=500_000))
    world = World(seed=2, spec=spec, loss=0.01, keep=False)
    a, b, c = world.join("a", "b", "c")
    for _ in range(10):
        a.send(message)
    peaks: Counter[str] = Counter()

    def look() -> bool:
        for member in (a, b, c):
            layers = [part for part in member.stack.parts if isinstance(part, FragmentLayer)]
            nbytes = member.probe.nbytes + layers[0].incomplete_bytes
            peaks[member.name] = max(peaks[member.name], nbytes)
        return len(c.delivered) == 10

    world.run_until(look, 60.0)
    assert peaks["a"] <= 500_000 + 60_000
    assert max(peaks["b"], peaks["c"]) <= len(message) + 500_000


def test_a_message_larger_than_the_bound_is_refused_at_once_with_the_number() -> None:
    world = World(seed=1, spec=presets.lan().replace(Fragment(max_message=1_000_000)))
    (a,) = world.join("a")
    a.send(bytes(1_000_000))
    with pytest.raises(TooLarge, match="1,000,001"):
        a.send(bytes(1_000_001))
    assert len(a.delivered) == 1


def test_no_receiver_is_reported_when_all_keep_up() -> None:
    world = World(seed=8, spec=bulk(), loss=0.1)
    members = world.join("a", "b", "c", "d")
    for member in members:
        for n in range(3):
            member.send(Random(n).randbytes(400_000))
    world.settle()
    for member in members:
        assert len(member.delivered) == 12
        assert (reported(member), member.skipped) == ([], [])
        layer = next(part for part in member.stack.parts if isinstance(part, LargeMessagesLayer))
        assert layer.unacked == {}
    assert world.check() == []
