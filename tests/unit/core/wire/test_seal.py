"""A cipher of a user's own: the body of each datagram changes, and nothing else is believed."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.wire.codec import decode, encode, group_id
from ringcast.core.wire.frames import UnicastAck
from ringcast.core.wire.layout import HEADER
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.seal import BodySeal
from ringcast.errors import Malformed, RemoteError, Sealed, Unsealed, WrongKey

GROUP = group_id("g")
FRAME = UnicastAck(1, 7, 0)


class Flipped(BodySeal):
    """Every bit turned round, behind a mark."""

    overhead = 2

    def encrypt(self, head: bytes, body: bytes) -> bytes:
        return b"##" + bytes(byte ^ 0xFF for byte in body)

    def decrypt(self, head: bytes, body: bytes) -> bytes:
        if not body.startswith(b"##"):
            raise WrongKey("no mark")
        return bytes(byte ^ 0xFF for byte in body[2:])


def plain() -> bytes:
    return b"".join(encode(GROUP, Address(3), [FRAME]))


def sealed() -> bytes:
    data = plain()
    buffers: list[Payload] = [data[:10], data[10:40], data[40:]]
    (made,) = Flipped().seal([Datagram(Address(5), buffers, len(data))])
    assert made.target == Address(5)
    whole = b"".join(made.buffers)
    assert made.nbytes == len(whole) == len(data) + Flipped.overhead
    return whole


def test_a_sealed_datagram_is_opened_as_it_was() -> None:
    assert sealed()[HEADER.size :] != plain()[HEADER.size :]
    assert bytes(Flipped().open(sealed())) == plain()
    assert decode(Flipped().open(memoryview(sealed())), GROUP) == (Address(3), [FRAME])


def test_a_member_without_the_cipher_drops_it_as_sealed() -> None:
    with pytest.raises(Sealed):
        decode(sealed(), GROUP)


@pytest.mark.parametrize(
    ("datagram", "error"),
    [
        (plain(), Unsealed),
        (b"", Malformed),
        (sealed()[: HEADER.size - 1], Malformed),
        (b"XX" + sealed()[2:], Malformed),
        (sealed()[: HEADER.size], WrongKey),
        (sealed().replace(b"##", b"--"), WrongKey),
    ],
)
def test_what_is_not_sealed_so_is_refused(datagram: bytes, error: type[RemoteError]) -> None:
    with pytest.raises(error):
        Flipped().open(datagram)
