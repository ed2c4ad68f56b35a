"""An inspected seal seals as its own does, and shows what it sealed."""

from __future__ import annotations

from ringcast.closed.inspected import InspectedSeal
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import UnicastAck
from ringcast.core.wire.outbox import Datagram


def test_an_inspected_seal_shows_what_it_sealed_last() -> None:
    keys = (Key(bytes(32)),)
    sender = InspectedSeal(GroupSeal(keys, "g", Address(1)))
    receiver = InspectedSeal(GroupSeal(keys, "g", Address(2)))
    buffers = encode(group_id("g"), Address(1), [UnicastAck(1, 2)])
    (sealed,) = sender.seal([Datagram(None, buffers, sum(map(len, buffers)))])
    assert sender.inner == [b"".join(buffers)]
    assert bytes(receiver.open(b"".join(sealed.buffers))) == sender.inner[0]
