"""The codec as a property: what is encoded is decoded, and nothing else is ever believed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import cast, get_args, get_origin, get_type_hints
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.codec import (
    FRAME_TYPES,
    decode,
    decode_frame,
    encode,
    encode_frame,
    group_id,
    register,
    source_of,
)
from ringcast.core.wire.fastpath import RunReader, read_pair
from ringcast.core.wire.frames import (
    RUNS,
    Ack,
    Alive,
    Data,
    Ending,
    Evict,
    Frame,
    FramePiece,
    Install,
    Join,
    Last,
    Nak,
    Present,
    Section,
    SenderMarks,
    Suspect,
    Unacked,
    UnicastData,
    UnicastNak,
    Vote,
)
from ringcast.core.wire.layout import (
    DATA_SIZE,
    EMPTY_MAX,
    EVERYBODY,
    FRAME,
    FRAMES_MAX,
    INT_MAX,
    RANGES_MAX,
    SEQNO_MAX,
    VIEW_NUMBER_MAX,
)
from ringcast.errors import Malformed, RemoteError, WrongGroup, WrongVersion

GROUP = group_id("prices")
SOURCE = Address(0x1234)

numbers = st.integers(0, INT_MAX)
seqnos = st.integers(1, SEQNO_MAX - 1_000)
addresses = st.integers(0, 2**64 - 1).map(Address)
view_ids = st.builds(ViewId, st.integers(0, VIEW_NUMBER_MAX), addresses)
payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=20) | st.lists(
    st.binary(min_size=VIEW_PAYLOAD_SIZE, max_size=VIEW_PAYLOAD_SIZE + 3), min_size=1, max_size=3
)
texts = st.text(max_size=8).filter(str.isprintable)
peers = st.builds(Peer, addresses.filter(bool), texts, texts, st.integers(0, 65_535))
views = st.builds(
    View,
    view_ids,
    st.lists(peers, min_size=1, max_size=5, unique_by=lambda peer: peer.address).map(tuple),
)
range_sets = st.lists(
    st.tuples(st.integers(1, 999), st.integers(0, 9)), min_size=1, max_size=9
).map(lambda pairs: RangeSet((first, first + more) for first, more in pairs))
SCALARS: dict[object, st.SearchStrategy[object]] = {
    int: numbers,
    Address: addresses,
    str: texts,
    bytes: st.binary(max_size=40),
    RangeSet: range_sets,
    ViewId: view_ids,
    Peer: peers,
    View: views,
}


def values_of(annotation: object) -> st.SearchStrategy[object]:
    """Values of a field with this annotation."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    if get_origin(annotation) is tuple:
        return st.lists(values_of(get_args(annotation)[0]), max_size=4).map(tuple)
    record = cast(Callable[..., object], annotation)
    return st.tuples(*map(values_of, get_type_hints(record).values())).map(lambda v: record(*v))


def frames_of(kind: type[Frame]) -> st.SearchStrategy[Frame]:
    """Frames of a kind, by the annotations of its fields."""
    hints = get_type_hints(kind)
    names: tuple[str, ...] = tuple(kind.__slots__)
    return st.tuples(*(values_of(hints[name]) for name in names)).map(lambda v: kind(*v))


@st.composite
def data_frames(draw: st.DrawFn) -> Frame:
    run = draw(payloads)
    nbytes = sum(map(len, run))
    first = draw(seqnos)
    if draw(st.booleans()):
        return UnicastData(draw(numbers), first, draw(seqnos), draw(numbers), 1, run, nbytes)
    view, start, low = draw(view_ids), draw(seqnos), draw(seqnos)
    return Data(view, start, draw(addresses), first, low, draw(numbers), 0, run, nbytes)


CONTROLS = [kind for kind in FRAME_TYPES.values() if kind not in RUNS]
controls = st.one_of(*map(frames_of, CONTROLS))
contents = st.lists(data_frames() | controls, max_size=6)


@pytest.mark.parametrize("kind", CONTROLS)
def test_every_kind_of_frame_is_decoded_as_it_was_encoded(kind: type[Frame]) -> None:
    @settings(max_examples=20)
    @given(frames_of(kind))
    def check(frame: Frame) -> None:
        assert decode(b"".join(encode(GROUP, SOURCE, [frame])), GROUP) == (SOURCE, [frame])
        if kind is not FramePiece:
            assert decode_frame(encode_frame(frame)) == frame

    check()


@given(contents, st.booleans())
def test_what_is_encoded_is_decoded(content: list[Frame], full: bool) -> None:
    datagram = b"".join(encode(GROUP, SOURCE, content, full))
    assert decode(datagram, GROUP) == (SOURCE, content)
    assert decode(memoryview(bytearray(datagram)), GROUP) == (SOURCE, content)
    assert source_of(datagram) == SOURCE


@given(st.binary(max_size=300))
def test_random_bytes_are_never_a_frame(noise: bytes) -> None:
    with pytest.raises(RemoteError):
        decode(noise, GROUP)


@given(contents, st.data())
def test_a_truncated_datagram_is_dropped(content: list[Frame], data: st.DataObject) -> None:
    datagram = b"".join(encode(GROUP, SOURCE, content))
    size = data.draw(st.integers(0, len(datagram) - 1))
    with pytest.raises(RemoteError):
        decode(datagram[:size], GROUP)


def sample() -> list[Frame]:
    """A datagram with a bit of everything."""
    view = View(ViewId(3, Address(1)), (Peer(Address(1), "a", "h:1"), Peer(Address(2), "b", "h:2")))
    section = Section(view.id, view.members, (Ending(Address(9), 4, Address(2), 1),))
    return [
        Data(view.id, 0, Address(1), 1, 0, 5, 0, [b"x" * 30] * 8, 240),
        Data(view.id, 0, Address(1), 9, 0, 5, 0, [b"a", b"", b"bcd"], 4),
        Ack(7),
        Nak(Address(1), RangeSet([(1, 3), (7, 9)])),
        Install(view, (1, 2), (section,)),
    ]


def test_a_hundred_thousand_mutated_datagrams_are_dropped() -> None:
    rng = random.Random(2024)
    good = b"".join(encode(GROUP, SOURCE, sample(), full_checksum=True))
    for _ in range(100_000):
        bad = mutated(good, rng)
        if bad != good:
            with pytest.raises(RemoteError):
                decode(bad, GROUP)


def mutated(good: bytes, rng: random.Random) -> bytes:
    """The datagram with some bits flipped, a piece cut out, doubled or overwritten."""
    bad = bytearray(good)
    at = rng.randrange(len(bad))
    end = min(len(bad), at + rng.randrange(1, 9))
    match rng.randrange(5):
        case 0:
            bad[at] ^= 1 << rng.randrange(8)
        case 1:
            del bad[at:end]
        case 2:
            bad[at:at] = bad[at:end]
        case 3:
            bad[at:end] = rng.randbytes(end - at)
        case _:
            bad += rng.randbytes(rng.randrange(1, 20))
    return bytes(bad)


def test_the_head_is_covered_when_payloads_are_not() -> None:
    content = sample()
    good = b"".join(encode(GROUP, SOURCE, content))
    payload = sum(frame.nbytes for frame in content if isinstance(frame, Data))
    for at in range(len(good) - payload):
        bad = bytearray(good)
        bad[at] ^= 0x10
        with pytest.raises(RemoteError):
            decode(bytes(bad), GROUP)


def test_another_group_and_another_version_have_names_of_their_own() -> None:
    good = b"".join(encode(GROUP, SOURCE, [Ack(1)]))
    with pytest.raises(WrongGroup):
        decode(good, group_id("weather"))
    with pytest.raises(WrongVersion):
        decode(good[:2] + b"\x63" + good[3:], GROUP)
    with pytest.raises(WrongVersion):
        decode(good[:2] + b"\x63\xff" + good[4:], GROUP)
    with pytest.raises(Malformed, match="flags"):
        decode(good[:3] + b"\x80" + good[4:], GROUP)
    with pytest.raises(Malformed):
        decode(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", GROUP)


def test_a_length_that_promises_gigabytes_takes_no_memory() -> None:
    run = Data(ViewId(1, Address(1)), 0, Address(1), 1, 0, 0, 0, [b"x"] * 3, 3)
    good = b"".join(encode(GROUP, SOURCE, [run]))
    for count in (2**32 - 1, 2**31, 65_537):
        forged = forge_count(good, count)
        with pytest.raises(Malformed):
            decode(forged, GROUP)


def forge_count(good: bytes, count: int) -> bytes:
    """The datagram with another number of messages in its run, and a right checksum."""
    bad = bytearray(good)
    place = 36 + DATA_SIZE - 4
    bad[place : place + 4] = struct.pack("!I", count)
    control = len(good) - 3
    bad[32:36] = struct.pack("!I", crc32(bytes(bad[36:control]), crc32(bytes(bad[:32]))))
    return bytes(bad)


@pytest.mark.parametrize(("code", "kind"), [(Ack.code, "NEW"), (99, Ack.kind)])
def test_two_frames_with_one_code_or_one_kind_are_an_error(code: int, kind: str) -> None:
    twin = type("Twin", (Frame,), {"code": code, "kind": kind})
    with pytest.raises(TypeError, match="Twin has the code or kind of Ack"):
        register([Ack, twin])


VIEW = ViewId(1, Address(1))
RUN = Data(VIEW, 0, Address(1), 1, 0, 0, 0, [b"x"], 1, 1)
PAIR = UnicastData(7, 1, 0, 0, 0, [b"x"], 1, 1)


@pytest.mark.parametrize(
    "content",
    [
        [Nak(Address(1), RangeSet())],
        [UnicastNak(7, RangeSet())],
        [Nak(Address(1), RangeSet([(1, SEQNO_MAX + 1)]))],
        [Nak(Address(1), RangeSet((2 * n, 2 * n) for n in range(1, RANGES_MAX + 2)))],
        [Last(ViewId(VIEW_NUMBER_MAX + 1, Address(1)), 0, 0, 0)],
        [Last(VIEW, 0, 0, INT_MAX + 1)],
        [Ack(INT_MAX + 1)],
        [Unacked((1, INT_MAX + 1))],
        [Vote(VIEW, (SenderMarks(Address(1), INT_MAX + 1, 0),))],
        [Suspect(tuple(map(Address, range(4_609))))],
        [Alive()] * (FRAMES_MAX + 1),
        [replace(RUN, view=ViewId(VIEW_NUMBER_MAX + 1, Address(1)))],
        [replace(RUN, start=SEQNO_MAX + 1)],
        [replace(RUN, low=SEQNO_MAX + 1)],
        [replace(RUN, first=SEQNO_MAX)],
        [replace(RUN, first=0)],
        [replace(RUN, sent_at=INT_MAX + 1)],
        [replace(RUN, flags=1 << 31)],
        [replace(RUN, payloads=[b""] * (EMPTY_MAX + 1), nbytes=0, size=0)],
        [replace(RUN, payloads=[b""] * (EMPTY_MAX // 2 + 1), nbytes=0, size=0)] * 2,
        [replace(PAIR, conn=INT_MAX + 1)],
        [replace(PAIR, sent_at=INT_MAX + 1)],
        [replace(PAIR, first=SEQNO_MAX)],
        [replace(PAIR, flags=1 << 31)],
        [Present(Peer(SOURCE, "", ""), VIEW, Peer(EVERYBODY, "", ""), 0, 0)],
        [Join(Peer(EVERYBODY, "", ""), "", 0)],
    ],
)
def test_what_no_member_could_answer_or_keep_is_dropped(content: list[Frame]) -> None:
    datagram = b"".join(encode(GROUP, SOURCE, content))
    with pytest.raises(Malformed):
        decode(datagram, GROUP)
    reader = RunReader(GROUP)
    assert not reader.start(datagram, VIEW)
    assert read_pair(datagram, GROUP, SOURCE) is None


@pytest.mark.parametrize("content", [Alive(), RUN, PAIR])
def test_what_is_from_the_address_for_all_is_dropped(content: Frame) -> None:
    """An answer to it would be one that every receiver reads."""
    frame = replace(content, origin=EVERYBODY) if isinstance(content, Data) else content
    datagram = b"".join(encode(GROUP, EVERYBODY, [frame], target=SOURCE))
    with pytest.raises(Malformed):
        decode(datagram, GROUP)
    to_all = b"".join(encode(GROUP, EVERYBODY, [frame]))
    assert not RunReader(GROUP).start(to_all, VIEW)
    assert read_pair(datagram, GROUP, SOURCE) is None


@pytest.mark.parametrize("text", ["\x1b[2J", "two\nlines", "\u202eright to left", "x" * 513, "\0"])
def test_text_with_control_characters_or_too_long_is_neither_sent_nor_taken(text: str) -> None:
    sent = b"".join(encode(GROUP, SOURCE, [Evict(Address(1), text)]))
    ((frame,),) = (decode(sent, GROUP)[1],)
    assert isinstance(frame, Evict)
    assert frame.reason.isprintable()
    assert len(frame.reason.encode()) <= 512
    raw = text.encode()
    forged = FRAME.pack(Evict.code, 12 + len(raw)) + struct.pack("!QI", 1, len(raw)) + raw
    with pytest.raises(Malformed):
        decode_frame(forged)
