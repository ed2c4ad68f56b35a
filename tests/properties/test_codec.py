"""The codec as a property: what is encoded is decoded, and nothing else is ever believed."""

from __future__ import annotations

import random
import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.address import Address, Peer
from ringcast.core.codec import (
    DATA_SIZE,
    FRAME_TYPES,
    decode,
    encode,
    group_id,
    source_of,
)
from ringcast.core.fields import VIEW_NUMBER_MAX
from ringcast.core.frames import (
    Ack,
    Data,
    Ending,
    Flushed,
    Frame,
    Held,
    Install,
    Last,
    Nak,
    Section,
    Suspect,
    UnicastData,
    UnicastNak,
)
from ringcast.core.ranges import RangeSet
from ringcast.core.slices import VIEW_PAYLOAD_SIZE
from ringcast.core.view import View, ViewId
from ringcast.errors import Malformed, RemoteError, WrongGroup, WrongVersion

GROUP = group_id("prices")
SOURCE = Address(0x1234)

numbers = st.integers(0, 2**64 - 1)
seqnos = st.integers(1, 2**63)
addresses = numbers.map(Address)
view_ids = st.builds(ViewId, st.integers(0, VIEW_NUMBER_MAX), addresses)
payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=20) | st.lists(
    st.binary(min_size=VIEW_PAYLOAD_SIZE, max_size=VIEW_PAYLOAD_SIZE + 3), min_size=1, max_size=3
)
peers = st.builds(Peer, addresses, st.text(max_size=8), st.text(max_size=8))
views = st.builds(
    View,
    view_ids,
    st.lists(peers, min_size=1, max_size=5, unique_by=lambda peer: peer.address).map(tuple),
)
range_sets = st.lists(
    st.tuples(st.integers(1, 999), st.integers(0, 9)), min_size=1, max_size=9
).map(lambda pairs: RangeSet((first, first + more) for first, more in pairs))


@st.composite
def data_frames(draw: st.DrawFn) -> Frame:
    run = draw(payloads)
    nbytes = sum(map(len, run))
    first = draw(seqnos)
    if draw(st.booleans()):
        return UnicastData(draw(numbers), first, draw(numbers), draw(numbers), 1, run, nbytes)
    view, start, low = draw(view_ids), draw(numbers), draw(numbers)
    return Data(view, start, draw(addresses), first, low, draw(numbers), 0, run, nbytes)


@st.composite
def installs(draw: st.DrawFn) -> Frame:
    view = draw(views)
    starts = tuple(draw(numbers) for _ in view)
    endings = draw(st.lists(st.builds(Ending, addresses, numbers, addresses, numbers), max_size=3))
    section = Section(draw(view_ids), view.members, tuple(endings))
    return Install(view, starts, (section,))


controls = st.one_of(
    st.builds(Ack, numbers),
    st.builds(Nak, addresses, range_sets),
    st.builds(Suspect, st.lists(addresses, max_size=4).map(tuple)),
    st.builds(
        Flushed,
        view_ids,
        numbers,
        st.lists(st.builds(Held, addresses, numbers, numbers)).map(tuple),
    ),
    installs(),
)
contents = st.lists(data_frames() | controls, max_size=6)


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


def test_every_frame_has_a_code_and_a_kind_of_its_own() -> None:
    kinds = [frame.kind for frame in FRAME_TYPES.values()]
    assert len(set(kinds)) == len(kinds)
    assert all(frame.code == code for code, frame in FRAME_TYPES.items())


@pytest.mark.parametrize(
    "frame",
    [
        Nak(Address(1), RangeSet()),
        UnicastNak(7, RangeSet()),
        Last(ViewId(VIEW_NUMBER_MAX + 1, Address(1)), 0, 0, 0),
    ],
)
def test_what_no_member_could_answer_is_dropped(frame: Frame) -> None:
    datagram = b"".join(encode(GROUP, Address(1), [frame]))
    with pytest.raises(Malformed):
        decode(datagram, GROUP)
