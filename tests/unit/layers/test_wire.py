"""The wire packs frames into datagrams that never exceed the mtu, whatever the frames are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack.datagram_size import BASE_SIZE
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import (
    Ack,
    Data,
    Frame,
    Install,
    Nak,
    PathProbe,
    SenderMarks,
    Suspect,
    UnicastData,
    UnicastNak,
    Vote,
)
from ringcast.core.wire.outbox import Datagram, Target
from ringcast.core.wire.receiver import Receiver
from ringcast.layers.wire import Wire, WirePart

A, B = Address(1), Address(2)
VIEW = ViewId(1, A)


def wire(mtu: int = 60_000, checksum: str = "head") -> WirePart:
    part = Wire(mtu=mtu, checksum=checksum).build(Env(Peer(A, "a", "a:1"), Random(1)))
    part.group = 7
    return part


def packed(part: WirePart, *frames: tuple[Target, Frame]) -> list[Datagram]:
    for target, frame in frames:
        part.env.out.send(frame, target)
    return part.pack(part.env.out)


def received(datagrams: Sequence[Datagram]) -> list[Frame]:
    taken: list[Frame] = []
    counters: Counter[str] = Counter()
    receiver = Receiver(7, B, lambda frames, _: taken.extend(frames), counters)
    receiver.receive([b"".join(datagram.buffers) for datagram in datagrams], VIEW)
    assert not counters
    return taken


def gaps(count: int) -> RangeSet:
    return RangeSet((2 * n, 2 * n) for n in range(1, count + 1))


def a_view(members: int) -> Install:
    numbers = range(1, members + 1)
    peers = tuple(Peer(Address(n), f"member-{n}", f"192.168.100.{n}:7800") for n in numbers)
    return Install(View(VIEW, peers), tuple(numbers), ())


def test_a_full_run_and_a_long_request_leave_in_datagrams_that_fit() -> None:
    run = UnicastData(7, 1, 0, 5, 0, [bytes(59_000)], 59_000, 59_000)
    request = UnicastNak(7, gaps(560))
    sent = packed(wire(), (B, run), (B, request))
    assert [datagram.nbytes for datagram in sent] == [sum(map(len, d.buffers)) for d in sent]
    assert max(datagram.nbytes for datagram in sent) <= 60_000
    assert received(sent) == [run, request]


@pytest.mark.parametrize("mtu", [512, 1_472, 60_000])
@pytest.mark.parametrize("checksum", ["head", "full"])
def test_no_datagram_exceeds_the_mtu(mtu: int, checksum: str) -> None:
    marks = tuple(SenderMarks(Address(n), n, n) for n in range(3_000))
    payloads = [bytes(n % 300) for n in range(300)]
    run = Data(VIEW, 0, A, 1, 0, 5, 0, payloads, sum(map(len, payloads)))
    frames: list[Frame] = [
        Ack(1),
        Nak(A, gaps(5_000)),
        a_view(1_000),
        run,
        Vote(VIEW, marks),
        Suspect(tuple(map(Address, range(1, 2_000)))),
        *[Ack(n) for n in range(500)],
    ]
    part = wire(mtu, checksum)
    sent = packed(part, *((None, frame) for frame in frames))
    for datagram in sent + packed(part, (None, a_view(1_000))):
        assert datagram.nbytes == sum(map(len, datagram.buffers)) <= mtu
    came = received(sent)
    asked = [bound for frame in came if isinstance(frame, Nak) for bound in frame.ranges.ranges()]
    assert asked == list(gaps(5_000).ranges())
    sent_payloads = [p for frame in came if isinstance(frame, Data) for p in frame.payloads]
    assert sent_payloads == payloads
    others = [frame for frame in came if not isinstance(frame, Nak | Data)]
    assert others == [frame for frame in frames if not isinstance(frame, Nak | Data)]


def test_a_frame_beyond_every_bound_is_dropped_and_counted() -> None:
    part = wire()
    assert packed(part, (None, Suspect(tuple(map(Address, range(200_000)))))) == []
    assert part.env.counters["dropped_oversized"] == 1


def test_the_mtu_is_that_of_the_transport_unless_one_is_given() -> None:
    for given, wanted in ((0, 1_472), (1_000, 1_000), (9_000, 9_000)):
        env = Env(Peer(A, "a", "a:1"), Random(1), mtu=1_472)
        Wire(mtu=given).build(env)
        assert env.mtu == wanted


# The size may change ------------------------------------------------------------------------------


def resized(part: WirePart, size: int) -> WirePart:
    part.env.datagram_size.path = size
    assert part.resize()
    return part


@pytest.mark.parametrize("target", [None, B])
@pytest.mark.parametrize("sizes", [[5_000], [5_000] * 3, [10, 5_000, 20]])
def test_messages_that_were_to_fit_larger_datagrams_leave_in_pieces(
    sizes: list[int], target: Address | None
) -> None:
    payloads = [bytes([n + 1]) * size for n, size in enumerate(sizes)]
    size = sizes[0] if len(set(sizes)) == 1 else 0
    run: Data | UnicastData
    if target is None:
        run = Data(VIEW, 0, A, 1, 0, 9, 0, payloads, sum(sizes), size)
    else:
        run = UnicastData(3, 1, 0, 9, 0, payloads, sum(sizes), size)
    datagrams = packed(resized(wire(), 1_472), (target, run), (target, Ack(4)))
    assert max(datagram.nbytes for datagram in datagrams) <= 1_472
    frames = received(datagrams)
    runs = [frame for frame in frames if isinstance(frame, Data | UnicastData)]
    assert [bytes(p) for frame in runs for p in frame.payloads] == payloads
    assert [frame.first for frame in runs] == [1, 2, 3][: len(runs)]
    assert Ack(4) in frames


def test_a_probe_makes_a_datagram_of_the_size_that_it_names() -> None:
    part = wire(1_472)
    datagrams = packed(part, (None, Ack(1)), (None, PathProbe(7, 9_000)), (None, Ack(2)))
    assert [datagram.nbytes for datagram in datagrams][1] == 9_000
    assert len(datagrams) == 3
    assert isinstance(received(datagrams)[1], PathProbe)


def test_control_frames_fit_the_base_size_where_datagrams_fit_packets() -> None:
    assert max(d.nbytes for d in packed(wire(8_972), (None, a_view(300)))) <= BASE_SIZE
    assert max(d.nbytes for d in packed(wire(8_972), (B, Nak(A, gaps(500))))) <= BASE_SIZE
    assert max(d.nbytes for d in packed(wire(60_000), (None, a_view(300)))) > BASE_SIZE


def test_a_large_datagram_is_told_to_the_watcher_once() -> None:
    part, calls = wire(1_472), list[int]()
    part.watch(calls.append)
    packed(part, (None, Ack(1)))
    assert not calls
    for _ in range(2):
        packed(part, (None, Data(VIEW, 0, A, 1, 0, 9, 0, [bytes(1_000)], 1_000, 1_000)))
    assert len(calls) == 1
    assert calls[0] > 1_000


def test_a_lost_datagram_of_a_packed_run_is_sent_again_as_it_was() -> None:
    part = resized(wire(), 1_472)

    def run(first: int, count: int) -> Data:
        return Data(VIEW, 0, A, first, 0, 5, 0, [bytes(1_000)] * count, count * 1_000, 1_000)

    every = packed(part, (None, run(1, 20)))
    assert len(every) == 15, "full datagrams"
    out = part.env.out
    assert out.send_again(run(1, 2), B) < 1_472, "messages 1 and 2 are spoilt by the first one"
    (again,) = part.pack(out)
    assert again.target == B
    assert again.buffers == every[0].buffers
    assert out.send_again(run(2, 1), B) == 1_000
    assert len(part.pack(out)) == 1
