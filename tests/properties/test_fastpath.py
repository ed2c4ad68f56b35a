"""The fast path reads and writes the very bytes of the codec, and lets nothing else through."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, VIEW_PAYLOAD_SIZE
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, encode
from ringcast.core.wire.cut import cut
from ringcast.core.wire.fastpath import (
    PLACEMENT_FRAGMENTS_MIN,
    RunReader,
    encode_pair,
    encode_run,
    read_pair,
)
from ringcast.core.wire.fragments import Cutting
from ringcast.core.wire.frames import Ack, Data, Frame, UnicastData
from ringcast.core.wire.layout import DATA_PAYLOADS_AT, FRAGMENT_HEADER_SIZE
from ringcast.core.wire.receiver import Receiver
from ringcast.core.wire.segments import Received, Segments

GROUP = 7
SOURCE = Address(0x1234)
TARGET = Address(0x777)
VIEW = ViewId(3, SOURCE)

sizes = st.integers(1, 40) | st.just(VIEW_PAYLOAD_SIZE)
counts = st.integers(1, 30) | st.just(1_500)


def a_run(count: int, size: int, first: int = 1, sent_at: int = 5) -> Data:
    payloads = [bytes([n % 251]) * size for n in range(count)]
    return Data(VIEW, 0, SOURCE, first, 0, sent_at, 0, payloads, count * size, size)


def a_pair(count: int, size: int, first: int = 7) -> UnicastData:
    payloads = [bytes([n % 251]) * size for n in range(count)]
    return UnicastData(77, first, 3, 5, 0, payloads, count * size, size)


def datagrams(run: Data, step: int) -> list[bytes]:
    return [b"".join(sent.buffers) for sent in encode_run(GROUP, SOURCE, run, step)]


def read(all_of_them: list[bytes], reader: RunReader) -> list[Data]:
    """The runs that a stack would get."""
    runs: list[Data] = []
    for datagram in all_of_them:
        if not reader.extend(datagram):
            assert reader.start(datagram, VIEW)
            assert reader.run is not None
            runs.append(reader.run)
    return runs


@given(counts, sizes, st.integers(1, 12))
def test_it_writes_what_the_codec_writes(count: int, size: int, step: int) -> None:
    run = a_run(count, size)
    pieces = cut(run, step * size)
    assert datagrams(run, step) == [b"".join(encode(GROUP, SOURCE, [piece])) for piece in pieces]


@given(counts, sizes, st.integers(1, 12))
def test_the_datagrams_of_a_batch_become_one_run_again(count: int, size: int, step: int) -> None:
    run = a_run(count, size)
    assert read(datagrams(run, step), RunReader(GROUP)) == [run]


def test_what_does_not_continue_the_run_begins_another() -> None:
    reader = RunReader(GROUP)
    runs = [
        a_run(10, 8),
        a_run(10, 8, first=12),  # 11 is missing.
        a_run(10, 8, first=22, sent_at=6),  # Another batch.
        a_run(10, 9, first=32, sent_at=6),  # Messages of another size.
    ]
    sent = [datagram for run in runs for datagram in datagrams(run, 4)]
    assert read(sent, reader) == runs
    doubled = read([sent[0], sent[0], sent[1]], RunReader(GROUP))
    assert [(run.first, len(run.payloads)) for run in doubled] == [(1, 4), (1, 8)]


def test_everything_else_is_left_to_the_codec() -> None:
    run = a_run(3, 8)
    others = [
        b"".join(encode(GROUP, SOURCE, [run, Ack(1)])),
        b"".join(encode(GROUP, SOURCE, [run], target=Address(9))),
        b"".join(encode(GROUP, SOURCE, [run], full_checksum=True)),
        b"".join(encode(GROUP, Address(9), [run])),
        b"".join(encode(GROUP + 1, SOURCE, [run])),
        b"".join(encode(GROUP, SOURCE, [a_run(3, 8, first=2**62 - 2)])),
        b"",
        b"x" * DATA_PAYLOADS_AT,
    ]
    reader = RunReader(GROUP)
    for datagram in others:
        assert not reader.extend(datagram)
        assert not reader.start(datagram, VIEW)
    assert reader.start(datagrams(a_run(3, 8), 3)[0], VIEW)
    for datagram in others:
        assert not reader.extend(datagram)


@given(counts, sizes)
def test_runs_to_one_member_are_written_and_read_as_the_codec_does(count: int, size: int) -> None:
    run = a_pair(count, size)
    sent = encode_pair(GROUP, SOURCE, TARGET, run)
    data = b"".join(sent.buffers)
    assert data == b"".join(encode(GROUP, SOURCE, [run], target=TARGET))
    assert sent.nbytes == len(data)
    assert read_pair(data, GROUP, TARGET) == (SOURCE, run)
    assert decode(data, GROUP, TARGET) == (SOURCE, [run])


def test_what_is_no_run_to_this_member_is_left_to_the_codec() -> None:
    run = a_pair(3, 8)
    others = [
        b"".join(encode(GROUP, SOURCE, [run, Ack(1)], target=TARGET)),
        b"".join(encode(GROUP, SOURCE, [run], target=Address(9))),
        b"".join(encode(GROUP, SOURCE, [run])),
        b"".join(encode(GROUP, SOURCE, [run], full_checksum=True, target=TARGET)),
        b"".join(encode(GROUP + 1, SOURCE, [run], target=TARGET)),
        b"".join(encode(GROUP, SOURCE, [a_pair(3, 8, first=2**62 - 2)], target=TARGET)),
        *datagrams(a_run(3, 8), 3),
        b"",
        b"x" * 200,
    ]
    assert [read_pair(datagram, GROUP, TARGET) for datagram in others] == [None] * len(others)
    good = b"".join(encode_pair(GROUP, SOURCE, TARGET, run).buffers)
    rng = random.Random(5)
    for at in range(len(good) - run.nbytes):
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(8)
        assert read_pair(bytes(bad), GROUP, TARGET) is None
    assert read_pair(good[:-1], GROUP, TARGET) is None


def test_a_head_with_a_wrong_bit_is_never_read() -> None:
    one, two = datagrams(a_run(6, 8), 3)
    rng = random.Random(5)
    for at in range(DATA_PAYLOADS_AT):
        bad = bytearray(two)
        bad[at] ^= 1 << rng.randrange(8)
        reader = RunReader(GROUP)
        assert not reader.start(bytes(bad), VIEW)
        assert reader.start(one, VIEW)
        assert not reader.extend(bytes(bad))
    assert decode(two, GROUP)[1] == [
        a_run(6, 8).__class__(VIEW, 0, SOURCE, 4, 0, 5, 0, [bytes([n]) * 8 for n in (3, 4, 5)], 24)
    ]


@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 3))
def test_fragments_are_written_like_messages_and_not_copied(
    total: int, piece: int, step: int
) -> None:
    message = bytes(n % 251 for n in range(total))
    some = Cutting(message, 9, FRAGMENT_HEADER_SIZE + piece).cut(16)
    run = Data(VIEW, 0, SOURCE, 4, 2, 5, FRAGMENT, some, some.nbytes, some.size)
    as_messages = replace(run, payloads=list(some))
    assert datagrams(run, step) == datagrams(as_messages, step)
    for datagram in encode_run(GROUP, SOURCE, run, 1):
        assert datagram.nbytes == sum(map(len, datagram.buffers))
        view = datagram.buffers[-1]
        assert isinstance(view, memoryview)
        assert view.obj is message


@pytest.mark.parametrize(
    ("fragments", "first", "flags", "begins"),
    [
        (PLACEMENT_FRAGMENTS_MIN, 0, FRAGMENT, True),
        (PLACEMENT_FRAGMENTS_MIN, 1, FRAGMENT, False),
        (PLACEMENT_FRAGMENTS_MIN - 1, 0, FRAGMENT, False),
        (PLACEMENT_FRAGMENTS_MIN, 0, 0, False),
    ],
)
def test_the_first_fragment_of_many_is_known(
    fragments: int, first: int, flags: int, begins: bool
) -> None:
    cutting = Cutting(bytes(10 * fragments), 1, FRAGMENT_HEADER_SIZE + 10)
    cutting.next = first
    some = cutting.cut(1)
    run = Data(VIEW, 0, SOURCE, 4, 2, 5, flags, some, some.nbytes, some.size)
    reader = RunReader(GROUP)
    assert not reader.begins_message
    assert reader.start(datagrams(run, 1)[0], VIEW)
    assert reader.begins_message == begins


@given(counts, st.integers(1, 40), st.integers(1, 12), st.integers(0, 30), st.integers(0, 200))
def test_segments_are_read_like_datagrams(
    count: int, size: int, step: int, lost: int, flipped: int
) -> None:
    """Runs of one or two batches in one buffer, perhaps one datagram lost and one bit wrong."""
    sent = [*datagrams(a_run(count, size), step), *datagrams(a_run(count, size, 9_000), step)]
    sent = [one for at, one in enumerate(sent) if at != lost and len(one) == len(sent[0])]
    whole = bytearray(b"".join(sent))
    whole[7 * flipped % len(whole)] ^= flipped % 2
    buffer = Segments(bytes(whole) + b"tail", len(sent[0]))
    together, apart = received([buffer]), received(list(buffer))
    assert together == apart
    assert len(together) <= 5


def received(some: Sequence[Received]) -> list[Frame]:
    taken: list[Frame] = []
    Receiver(GROUP, TARGET, lambda frames, _: taken.extend(frames), Counter()).receive(some, VIEW)
    return taken
