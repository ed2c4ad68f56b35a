"""A member under its lock: what it believes of others."""

from ringcast.core.model.address import Address, Peer
from ringcast.runtime.net.inprocess import MemoryTransport
from tests.runtime.support import members


def test_a_stranger_cannot_redirect_what_is_sent_to_a_member() -> None:
    with members(2, "memory") as (a, b):
        member = a._member
        assert isinstance(member.transport, MemoryTransport)
        with member._lock:
            member.stack.env.out.learn(Peer(b.me, "b", "elsewhere:1"))
            member.stack.env.out.learn(Peer(Address(77), "new", "there:1"))
            member._transmit()
        assert member.transport._endpoints[b.me] == b.endpoint
        assert member.transport._endpoints[Address(77)] == "there:1"
