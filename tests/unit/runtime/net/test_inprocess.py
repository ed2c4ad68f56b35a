"""The network inside one process."""

import select

from ringcast.core.model.address import Address, Peer
from ringcast.core.wire.outbox import Datagram
from ringcast.runtime.net.inprocess import QUEUE_MAX, MemoryTransport


def is_ready(transport: MemoryTransport) -> bool:
    return bool(select.select(transport.filenos(), (), (), 0)[0])


def test_everybody_hears_and_one_is_reached() -> None:
    a, b, c = (MemoryTransport() for _ in range(3))
    for number, transport in enumerate((a, b, c), start=1):
        transport.open(Address(number), 7)
    try:
        a.learn(Peer(Address(2), "b", b.endpoint))
        a.send([Datagram(None, [b"al", b"l"], 3), Datagram(Address(2), [b"b"], 1)], ())
        a.send([Datagram(c.endpoint, [b"c"], 1), Datagram(Address(9), [b"x"], 1)], ())
        assert a.receive(10) == []
        assert is_ready(b)
        assert b.receive(1) == [b"all"]
        assert is_ready(b)
        assert b.receive(10) == [b"b"]
        assert not is_ready(b)
        assert c.receive(10) == [b"all", b"c"]
        assert a.counters["dropped_unknown_target"] == 1
    finally:
        for transport in (a, b, c):
            transport.close()


def test_a_full_queue_drops() -> None:
    a, b = MemoryTransport(), MemoryTransport()
    a.open(Address(1), 7)
    b.open(Address(2), 7)
    try:
        a.send([Datagram(b.endpoint, [b"x"], 1)] * (QUEUE_MAX + 5), ())
        assert b.counters["dropped_queue_full"] == 5
    finally:
        a.close()
        b.close()
    b.put(b"too late")
