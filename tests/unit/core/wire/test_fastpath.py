"""The fast path takes all that it is made for: what it leaves is read right, but slowly."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, encode
from ringcast.core.wire.fastpath import (
    ACK_DATAGRAM_SIZE,
    AckReader,
    RunReader,
    encode_pair,
    encode_run,
    read_pair,
)
from ringcast.core.wire.frames import Ack, Data, Frame, UnicastData
from ringcast.core.wire.layout import (
    DATA_PAYLOADS_AT,
    EVERYBODY,
    INT_MAX,
    PAIR_PAYLOADS_AT,
    SEQNO_MAX,
)

GROUP, SOURCE, TARGET = 7, Address(0x1234), Address(0x777)
VIEW = ViewId(3, SOURCE)


def a_run(count: int, size: int, first: int = 1) -> Data:
    payloads = [bytes([n % 251]) * size for n in range(count)]
    return Data(VIEW, 0, SOURCE, first, 0, 5, 0, payloads, count * size, size)


def datagrams(run: Data, step: int) -> list[bytes]:
    return [b"".join(one.buffers) for one in encode_run(GROUP, SOURCE, run, step)]


def a_pair(count: int, size: int, conn: int = 77) -> UnicastData:
    return UnicastData(conn, 7, 3, 5, 0, [b"x" * size] * count, count * size, size)


def test_a_datagram_knows_its_size() -> None:
    for one in encode_run(GROUP, SOURCE, a_run(7, 10), 3):
        assert one.nbytes == sum(map(len, one.buffers))


def test_a_run_that_is_sent_again_to_one_member_is_read_by_that_member_only() -> None:
    run = a_run(6, 10)
    sent = [b"".join(one.buffers) for one in encode_run(GROUP, SOURCE, run, 3, TARGET)]
    assert {one.target for one in encode_run(GROUP, SOURCE, run, 3, TARGET)} == {TARGET}
    assert sent[0] == b"".join(encode(GROUP, SOURCE, [a_run(3, 10)], target=TARGET))
    reader = RunReader(GROUP, TARGET)
    assert reader.start(sent[0], VIEW)
    assert reader.extend(sent[1])
    assert reader.run == run
    assert not RunReader(GROUP, SOURCE).start(sent[0], VIEW)
    assert not RunReader(GROUP).start(sent[0], VIEW)


def test_segments_of_one_run_are_joined_at_once() -> None:
    run = a_run(12, 10)
    sent = datagrams(run, 3)
    reader = RunReader(GROUP)
    assert reader.start(sent[0], VIEW)
    whole = b"".join(sent)
    assert reader.extend_by(whole, len(sent[0]), len(sent[0])) == 3
    assert reader.run == run


def test_segments_are_joined_up_to_the_first_that_does_not_follow() -> None:
    sent = datagrams(a_run(12, 10), 3)
    reader = RunReader(GROUP)
    assert reader.start(sent[0], VIEW)
    assert reader.extend_by(sent[1] + sent[3] + sent[2], 0, len(sent[0])) == 1
    assert reader.run == a_run(6, 10)
    assert reader.extend_by(b"".join(sent), 0, len(sent[0]) + 1) == 0, "of another size"
    assert reader.extend_by(sent[2][:-1], 0, len(sent[0])) == 0, "not a whole one"


def test_a_datagram_that_is_cut_off_does_not_extend_a_run() -> None:
    sent = datagrams(a_run(6, 10), 3)
    reader = RunReader(GROUP)
    assert not reader.extend(sent[0]), "there is no run"
    assert reader.start(sent[0], VIEW)
    for size in range(len(sent[1])):
        assert not reader.extend(sent[1][:size])
    assert reader.extend(sent[1])
    assert reader.run == a_run(6, 10)


def test_the_last_seqno_is_reached_and_not_passed() -> None:
    last = datagrams(a_run(4, 10, first=SEQNO_MAX - 4), 2)
    reader = RunReader(GROUP)
    assert reader.start(last[0], VIEW)
    assert reader.extend(last[1])
    beyond = a_run(2, 10, first=SEQNO_MAX)
    assert not reader.extend(b"".join(encode(GROUP, SOURCE, [beyond])))


def test_a_pair_of_one_byte_and_the_highest_connection_is_read() -> None:
    for run in (a_pair(1, 1), a_pair(3, 5, conn=INT_MAX)):
        data = b"".join(encode_pair(GROUP, SOURCE, TARGET, run).buffers)
        assert read_pair(data, GROUP, TARGET) == (SOURCE, run)
        assert read_pair(data + b"x", GROUP, TARGET) is None
        assert read_pair(data[:PAIR_PAYLOADS_AT], GROUP, TARGET) is None
    data = b"".join(encode_pair(GROUP, SOURCE, TARGET, a_pair(1, 1, conn=INT_MAX + 1)).buffers)
    assert read_pair(data, GROUP, TARGET) is None


def test_a_head_without_messages_is_no_run() -> None:
    (sent,) = datagrams(a_run(1, 1), 1)
    reader = RunReader(GROUP)
    assert reader.start(sent, VIEW)
    assert not RunReader(GROUP).start(sent[:DATA_PAYLOADS_AT], VIEW)
    assert not RunReader(GROUP).start(sent[: DATA_PAYLOADS_AT - 1], VIEW)


def an_ack(ack: Ack, target: Address = TARGET, source: Address = SOURCE) -> bytes:
    return b"".join(encode(GROUP, source, [ack], target=target))


@pytest.mark.parametrize("ack", [Ack(0), Ack(7, 3), Ack(INT_MAX, INT_MAX)])
def test_an_ack_is_read_as_the_codec_reads_it(ack: Ack) -> None:
    sent = an_ack(ack)
    assert len(sent) == ACK_DATAGRAM_SIZE
    assert AckReader(GROUP, TARGET).read(sent) == (SOURCE, ack)
    assert AckReader(GROUP, TARGET).read(memoryview(sent)) == decode_one(sent)


def test_an_ack_with_one_wrong_byte_is_left_to_the_codec() -> None:
    sent = an_ack(Ack(7, 3))
    reader = AckReader(GROUP, TARGET)
    for at in range(len(sent)):
        for flip in (1, 0x80):
            wrong = bytearray(sent)
            wrong[at] ^= flip
            assert reader.read(bytes(wrong)) is None


def test_acks_for_others_or_out_of_range_are_left_to_the_codec() -> None:
    reader = AckReader(GROUP, TARGET)
    assert reader.read(an_ack(Ack(7), target=SOURCE)) is None
    assert reader.read(an_ack(Ack(7), source=EVERYBODY)) is None
    assert reader.read(an_ack(Ack(INT_MAX + 1))) is None
    assert reader.read(an_ack(Ack(7, INT_MAX + 1))) is None
    assert AckReader(GROUP + 1, TARGET).read(an_ack(Ack(7))) is None


def decode_one(datagram: bytes) -> tuple[Address, Frame]:
    source, (frame,) = decode(datagram, GROUP, TARGET)
    return source, frame
