"""Packed runs: what was sent comes out, whatever is lost, late, spoilt or invented on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire import packed
from ringcast.core.wire.fragments import Fragments
from ringcast.core.wire.frames import Data, Frame
from ringcast.core.wire.layout import DATA_PAYLOADS_AT, PACKED_AT, PACKED_HEAD_SIZE
from ringcast.core.wire.outbox import TRAIN_MAX, TRAIN_SEGMENTS_MAX, Datagram, without_trains
from ringcast.core.wire.packed import (
    HALVES_BYTES_MAX,
    STREAMS_MAX,
    PackedReader,
    encode_packed,
    is_worth_packing,
    pack,
    peek,
)
from ringcast.core.wire.receiver import Receiver
from ringcast.core.wire.segments import Received, Segments

GROUP, A, B, ME = 7, Address(1), Address(2), Address(3)
VIEW = ViewId(4, A)
ROOM = 1_472 - DATA_PAYLOADS_AT
STEP = 1_472 - PACKED_AT
FRAGMENTS = Fragments(memoryview(bytes(10_000)), 1_000, (1, 10, 10_000), range(10))


def a_run(count: int, size: int = 1_000, first: int = 10, origin: Address = A) -> Data:
    content = Random(f"{count}/{size}/{first}/{origin}").randbytes(count * size)
    payloads = [content[at : at + size] for at in range(0, len(content), size)]
    return Data(VIEW, 1, origin, first, 3, 99, 0, list(payloads), count * size, size)


def trains(run: Data, room: int = ROOM) -> list[Datagram]:
    return list(encode_packed(pack(GROUP, run.origin, run, room)))


def datagrams(run: Data, room: int = ROOM) -> list[bytes]:
    return [b"".join(one.buffers) for one in without_trains(trains(run, room))]


def segments(run: Data, room: int = ROOM) -> list[Received]:
    """What the kernel hands over that joins what it cut."""
    whole = [(bytes(one.buffers[0]), one.segment) for one in trains(run, room)]
    return [Segments(data, size) if size else data for data, size in whole]


def read(received: Iterable[Received]) -> list[Data]:
    taken: list[Frame] = []
    counters: Counter[str] = Counter()
    receiver = Receiver(GROUP, ME, lambda frames, _: taken.extend(frames), counters)
    receiver.receive(list(received), VIEW)
    assert not counters
    assert all(isinstance(frame, Data) for frame in taken)
    return [frame for frame in taken if isinstance(frame, Data)]


def messages(runs: Sequence[Data]) -> dict[tuple[Address, int], bytes]:
    """Every message that came, and each only once."""
    found: dict[tuple[Address, int], bytes] = {}
    for run in runs:
        assert run.nbytes == sum(map(len, run.payloads)) == len(run.payloads) * run.size
        for number, payload in enumerate(run.payloads, run.first):
            assert (run.origin, number) not in found
            found[run.origin, number] = bytes(payload)
    return found


def sent(*runs: Data) -> dict[tuple[Address, int], bytes]:
    return messages(runs)


@pytest.mark.parametrize(("count", "size", "room"), [
    (2, 1_000, ROOM), (100, 1_000, ROOM), (500, 700, ROOM), (70, 1_343, ROOM),
    (90, 3_100, 8_972 - DATA_PAYLOADS_AT), (3, 400, 512 - DATA_PAYLOADS_AT),
])  # fmt: skip
def test_a_run_comes_out_as_it_was_sent(count: int, size: int, room: int) -> None:
    run = a_run(count, size)
    assert read(datagrams(run, room)) == [run]
    assert read(segments(run, room)) == [run]


def test_datagrams_are_full_and_trains_fit_a_system_call() -> None:
    run = a_run(500)
    assert [len(one) for one in datagrams(run)[:-1]] == [1_472] * (500_000 // STEP)
    for train in trains(run):
        assert train.nbytes == sum(map(len, train.buffers)) <= TRAIN_MAX
        assert train.segment == 1_472
        assert train.nbytes <= TRAIN_SEGMENTS_MAX * train.segment


def test_a_train_of_small_datagrams_has_as_many_as_the_kernel_takes() -> None:
    room = 512 - DATA_PAYLOADS_AT
    longest = max(train.nbytes for train in trains(a_run(500, 250), room))
    assert longest == TRAIN_SEGMENTS_MAX * 512


def test_a_train_is_no_longer_than_the_sender_wants() -> None:
    run = a_run(100)
    part = pack(GROUP, run.origin, run, ROOM)
    for most in (20_000, 3_000, 1):
        cut = list(encode_packed(part, None, most))
        assert max(train.nbytes for train in cut) <= max(most, 1_472)
        alone = [b"".join(one.buffers) for one in without_trains(cut)]
        assert alone == datagrams(run)


def test_a_datagram_by_itself_is_no_train() -> None:
    run = a_run(2)
    last = trains(replace(run, payloads=run.payloads[:1], nbytes=1_000))
    assert [train.segment for train in last] == [0]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_not_lost_comes_in_any_order(seed: int) -> None:
    chance = Random(seed)
    run = a_run(60, chance.choice([301, 700, 1_000, 1_300]))
    every = datagrams(run)
    lost = {at for at in range(len(every)) if chance.random() < 0.2}
    kept = [at for at in range(len(every)) if at not in lost]
    chance.shuffle(kept)
    came = messages(read(every[at] for at in kept))
    touched = set[int]()
    for at in lost:
        end = min(run.nbytes, (at + 1) * STEP)
        touched |= set(range(at * STEP // run.size, -(-end // run.size)))
    expected = {key: text for key, text in sent(run).items() if key[1] - run.first not in touched}
    assert came == expected


@pytest.mark.parametrize("seed", range(20))
def test_doubles_give_the_same_bytes(seed: int) -> None:
    chance = Random(seed)
    run = a_run(30)
    every = datagrams(run) * 2
    chance.shuffle(every)
    texts = sent(run)
    found = set[int]()
    for part in read(every):
        for number, payload in enumerate(part.payloads, part.first):
            assert bytes(payload) == texts[A, number]
            found.add(number)
    assert found == {number for _, number in texts}


def test_mixed_datagrams_of_two_senders_are_read() -> None:
    one, two = a_run(40), a_run(40, first=500, origin=B)
    mixed = [part for pair in zip(datagrams(one), datagrams(two), strict=True) for part in pair]
    assert messages(read(mixed)) == sent(one, two)


def test_runs_of_one_sender_follow_each_other() -> None:
    one, two = a_run(40), a_run(40, first=50)
    assert messages(read(datagrams(one) + datagrams(two))) == sent(one, two)
    late = datagrams(one)[:-1] + datagrams(two) + datagrams(one)[-1:]
    assert messages(read(late)) == sent(one, two)


def test_a_half_waits_for_the_repair_of_the_other() -> None:
    run = a_run(4)
    every = datagrams(run)
    repair = datagrams(replace(run, first=11, payloads=run.payloads[1:3], nbytes=2_000))
    came = read([every[0], *every[2:], *repair])
    texts = sent(run)
    found = {n: bytes(p) for part in came for n, p in enumerate(part.payloads, part.first)}
    assert found == {number: text for (_, number), text in texts.items()}


def test_halves_of_other_cuts_are_not_put_together() -> None:
    run = a_run(4)
    beginning = datagrams(run)[0]  # Message 10, and 383 bytes of message 11.
    other = datagrams(replace(run, first=11, payloads=run.payloads[1:], nbytes=3_000))[1:]
    numbers = {number for _, number in messages(read([beginning, *other]))}
    assert numbers == {10, 13}  # 617 bytes of message 12 came; of 11 nothing further.


def test_the_checksum_wraps_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "crc32", lambda *_: (1 << 32) - 10_000)
    run = a_run(50)
    assert read(datagrams(run)) == [run]
    assert read(segments(run)) == [run]


def test_every_spoilt_head_is_refused() -> None:
    whole = datagrams(a_run(4))[1]
    for bit in range(8 * PACKED_AT):
        spoilt = bytearray(whole)
        spoilt[bit // 8] ^= 1 << bit % 8
        reader = PackedReader(GROUP)
        assert not reader.read(bytes(spoilt), VIEW), f"bit {bit}"
        assert not reader.runs


@pytest.mark.parametrize("at", [3, 30, 45, 60, 75, PACKED_HEAD_SIZE + 3])
def test_a_train_with_a_spoilt_head_is_read_one_by_one(at: int) -> None:
    run = a_run(40)
    (train,) = segments(run)
    assert isinstance(train, Segments)
    spoilt = bytearray(train.data)
    spoilt[5 * train.size + at] ^= 1
    taken: list[Frame] = []
    counters: Counter[str] = Counter()
    receiver = Receiver(GROUP, ME, lambda frames, _: taken.extend(frames), counters)
    receiver.receive([Segments(bytes(spoilt), train.size)], VIEW)
    came = messages([frame for frame in taken if isinstance(frame, Data)])
    touched = range(5 * STEP // 1_000, -(-6 * STEP // 1_000))
    assert came == {
        key: text for key, text in sent(run).items() if key[1] - run.first not in touched
    }
    assert sum(counters.values()) == 1


def test_short_data_are_no_packed_datagrams() -> None:
    whole = datagrams(a_run(4))[0]
    for size in range(PACKED_AT + 1):
        assert not PackedReader(GROUP).read(whole[:size], VIEW)


def test_datagrams_of_another_group_are_refused() -> None:
    assert not PackedReader(GROUP + 1).read(datagrams(a_run(4))[0], VIEW)


def test_bytes_beyond_the_end_of_a_run_are_refused() -> None:
    last = datagrams(a_run(4))[-1]
    assert not PackedReader(GROUP).read(last + b"x", VIEW)


def test_strangers_cannot_fill_the_memory() -> None:
    reader = PackedReader(GROUP)
    for number in range(4_000):
        run = a_run(2, origin=Address(100 + number), first=1 + number)
        assert reader.read(datagrams(run)[1], VIEW)  # The end of a message whose beginning lacks.
    assert len(reader._streams) == STREAMS_MAX
    kept = sum(len(half) for _, half in reader._halves.values())
    assert HALVES_BYTES_MAX - 1_000 < kept == reader._halves_bytes <= HALVES_BYTES_MAX


def test_the_middle_of_a_message_is_dropped() -> None:
    """A head may say that a message is larger than a datagram; no sender makes such."""
    reader = PackedReader(GROUP)
    run = a_run(4, 3_000)
    for one in datagrams(run):
        assert reader.read(one, VIEW)
    assert messages(reader.runs).items() <= sent(run).items()
    assert reader._halves_bytes == sum(len(half) for _, half in reader._halves.values())


@pytest.mark.parametrize(("run", "is_worth"), [
    (a_run(10), True),
    (a_run(1), False),  # It fits one datagram.
    (a_run(100, 100), False),  # 13 whole messages leave little empty.
    (a_run(10, 1_300), False),
    (a_run(10, 1_400), False),  # A message is larger than a datagram.
    (replace(a_run(10), payloads=FRAGMENTS), False),
])  # fmt: skip
def test_runs_are_packed_where_it_saves_packets(run: Data, is_worth: bool) -> None:
    assert is_worth_packing(run, ROOM) == is_worth


def test_peek_tells_which_messages_a_datagram_touches() -> None:
    run = a_run(4)
    places = [peek(one, GROUP) for one in datagrams(run)]
    assert [(p.first, len(p.payloads)) for p in places if p] == [(10, 2), (11, 2), (12, 2)]
    assert peek(b"RC" + bytes(200), GROUP) is None


def test_a_train_is_read_at_once_if_it_is_within_its_run() -> None:
    run = a_run(60)
    first, *_ = trains(run)
    whole = bytes(first.buffers[0])
    count = len(whole) // first.segment
    assert count > 1
    reader = PackedReader(GROUP)
    whole = whole[: count * first.segment]
    assert reader.read_train(whole, first.segment, VIEW) == len(whole)
    assert sum(len(part.payloads) for part in reader.runs) == count * STEP // run.size
    twice = whole + whole[: first.segment]
    assert PackedReader(GROUP).read_train(twice, first.segment, VIEW) == 0, "it does not follow"


def test_a_train_that_goes_beyond_its_run_is_refused() -> None:
    run = a_run(4)
    content = b"".join(map(bytes, run.payloads))
    short = replace(run, payloads=run.payloads[:3], nbytes=3_000)
    heads = [one[:PACKED_AT] for one in datagrams(short)]
    padded = heads[0] + content[:STEP] + heads[1] + content[STEP : 2 * STEP]
    assert PackedReader(GROUP).read_train(padded, PACKED_AT + STEP, VIEW) == len(padded)
    longer = padded + heads[2] + content[:STEP]
    assert PackedReader(GROUP).read_train(longer, PACKED_AT + STEP, VIEW) == 0


def test_a_message_as_large_as_the_room_fits_a_datagram_by_itself() -> None:
    """Nothing of the datagram is empty, and nothing larger fits it."""
    assert not is_worth_packing(a_run(10, STEP), ROOM)
    assert not is_worth_packing(a_run(10, STEP + 1), ROOM)
    assert is_worth_packing(a_run(10, STEP - STEP // 7), ROOM)
