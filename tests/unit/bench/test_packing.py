"""The packing of the bare pairs: full datagrams, and all messages back in order."""

import pytest

from ringcast_bench.messages import Buffer, Messages
from ringcast_bench.raw.packing import DATAGRAM, HEADER, ack_every, cut, cut_by_struct, packets


@pytest.mark.parametrize("size", [1, 100, 999, 1_000, 7_000, 60_000])
def test_what_is_packed_is_cut_again(size: int) -> None:
    messages = Messages(size, 1_500)
    by_struct: list[Buffer] = []
    by_slices: list[Buffer] = []
    high = 0
    for packet in packets(messages):
        datagram = bytearray(b"".join(packet.buffers))
        assert len(datagram) == packet.nbytes + HEADER.size <= DATAGRAM + HEADER.size
        by_struct += cut_by_struct(datagram)
        by_slices += cut(bytearray(b"before") + datagram, at=6)
        assert packet.high > high
        high = packet.high
    assert high == 1_500
    assert by_struct == by_slices == list(messages.each())


def test_datagrams_are_full() -> None:
    sizes = [packet.nbytes for packet in packets(Messages(100, 10_000))]
    assert set(sizes[:-1]) == {DATAGRAM}


def test_acks_come_several_times_in_a_window() -> None:
    assert ack_every(1_000, 1_800_000) == 600
    assert ack_every(100, 1_800_000) == 600
    assert ack_every(50_000, 1_800_000) == 12
    assert ack_every(1_000_000, 1_800_000) == 1
