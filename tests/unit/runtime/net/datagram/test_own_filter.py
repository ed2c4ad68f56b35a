"""The kernel drops a member's own datagrams, and what is not of its group."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import encode
from ringcast.core.wire.frames import Alive, Frame, Leave, UnicastAck
from ringcast.runtime.net.datagram.own_filter import (
    HEAVY_SAMPLE,
    MEMBERS_MAX,
    SAMPLE,
    SEALED_SAMPLE,
    drop_foreign,
    drop_own,
    sample_strangers,
)

ME, OTHER = Address(2**63 + 5), Address(2**40 + 5)
LEAVE = Leave(ViewId(1, OTHER))
OURS, NEXT, FOREIGN = 2**63 + 17, 2**33, 2**63 + 18

pytestmark = pytest.mark.net


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        yield made


def datagram(group: int, source: Address) -> bytes:
    return b"".join(encode(group, source, [UnicastAck(1, 2)]))


def passes(sock: socket.socket, data: bytes) -> bool:
    """Whether a datagram arrives; on loopback it has arrived once it is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(data, sock.getsockname())
    try:
        return sock.recv(65_536) == data
    except BlockingIOError:
        return False


def test_own_datagrams_are_dropped_and_everything_else_passes(sock: socket.socket) -> None:
    assert drop_own(sock, ME)
    assert not passes(sock, datagram(OURS, ME))
    for other in (datagram(OURS, OTHER), datagram(FOREIGN, OTHER), b"", b"garbage", bytes(100)):
        assert passes(sock, other)
    for neighbour in (Address(ME + 1), Address(ME ^ 2**40)):
        assert passes(sock, datagram(OURS, neighbour))


def test_only_the_groups_datagrams_pass(sock: socket.socket) -> None:
    assert drop_foreign(sock, ME, (OURS, NEXT))
    for group in (OURS, NEXT):
        assert passes(sock, datagram(group, OTHER))
        assert not passes(sock, datagram(group, ME))
    for group in (FOREIGN, OURS ^ 2**40, NEXT + 1, 0):
        assert not passes(sock, datagram(group, OTHER))
    whole = datagram(OURS, OTHER)
    for garbage in (b"", b"garbage", bytes(100), b"XX" + whole[2:], whole[:35]):
        assert not passes(sock, garbage)


def test_a_later_filter_replaces_the_former(sock: socket.socket) -> None:
    drop_foreign(sock, ME, (OURS,))
    drop_foreign(sock, ME, (NEXT,))
    assert passes(sock, datagram(NEXT, OTHER))
    assert not passes(sock, datagram(OURS, OTHER))


def test_other_versions_of_the_group_pass(sock: socket.socket) -> None:
    drop_foreign(sock, ME, (OURS,))
    data = datagram(OURS, OTHER)
    assert passes(sock, data[:2] + b"\x07" + data[3:])


def control(source: Address, frame: Frame) -> bytes:
    return b"".join(encode(OURS, source, [frame]))


def test_in_a_flood_members_and_joiners_pass_and_few_strangers(sock: socket.socket) -> None:
    members = [Address(2**40 + 7 * number) for number in range(MEMBERS_MAX)]
    assert sample_strangers(sock, ME, (OURS,), members)
    for member in (members[0], members[-1]):
        assert passes(sock, control(member, Alive()))
    stranger = Address(2**40 + 1)
    assert passes(sock, control(stranger, LEAVE))
    assert not passes(sock, control(ME, LEAVE))
    assert not passes(sock, datagram(FOREIGN, members[0]))
    count = sum(passes(sock, control(stranger, Alive())) for _ in range(4_096))
    assert 0 < count < 4_096 // SAMPLE * 4, "a share of 1/64, by chance"


def test_in_a_flood_of_what_groups_form_with_members_pass_and_few_of_these(
    sock: socket.socket,
) -> None:
    stranger, member = Address(2**40 + 1), Address(2**40 + 7)
    assert sample_strangers(sock, ME, (OURS,), [member], is_heavy=True)
    assert passes(sock, control(member, LEAVE))
    count = sum(passes(sock, control(stranger, LEAVE)) for _ in range(4_096))
    assert 0 < count < 4_096 // HEAVY_SAMPLE * 4, "a share of 1/32, by chance"


def test_in_a_flood_of_a_closed_group_members_pass_and_a_share_of_joiners(
    sock: socket.socket,
) -> None:
    joiner, member = Address(2**40 + 1), Address(2**40 + 7)
    assert sample_strangers(sock, ME, (OURS, NEXT), [member], is_sealed=True)
    for group in (OURS, NEXT):
        assert passes(sock, datagram(group, member))
        count = sum(passes(sock, datagram(group, joiner)) for _ in range(1_024))
        assert 512 < count * SEALED_SAMPLE < 2_048, "a share of 1/8, by chance"


def test_a_filter_says_that_there_are_too_many_members(sock: socket.socket) -> None:
    members = [Address(number) for number in range(1, MEMBERS_MAX + 2)]
    assert not sample_strangers(sock, ME, (OURS,), members)
    assert not sample_strangers(sock, ME, (OURS, NEXT), members[:-1])
