"""What an application was given, looked at as messages."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Message
from ringcast.core.model.events import ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.errors import LocalError
from ringcast.sim.engine.log import Delivered, Log

A, B = Address(1), Address(2)


def batch(sender: Address, first: int, *payloads: bytes) -> Batch:
    return Batch(sender, payloads, sum(map(len, payloads)), first=first)


def test_messages_are_made_from_batches() -> None:
    delivered = Delivered(keep=True)
    delivered.add(batch(A, 1, b"x", b"y"))
    delivered.add(batch(B, 7, b"z"))
    assert len(delivered) == 3
    assert list(delivered) == [Message(A, 1, b"x"), Message(A, 2, b"y"), Message(B, 7, b"z")]
    assert [delivered[i] for i in range(3)] == list(delivered)
    assert delivered[-1] == Message(B, 7, b"z")
    assert delivered[1:] == list(delivered)[1:]
    with pytest.raises(IndexError):
        delivered[3]


def test_without_keep_only_the_number_is_known() -> None:
    delivered = Delivered(keep=False)
    delivered.add(batch(A, 1, b"x", b"y"))
    assert len(delivered) == 2
    with pytest.raises(LocalError, match="keep=True"):
        delivered[0]


def test_a_log_sorts_events_by_what_they_are() -> None:
    log = Log(keep=False)
    view = View(ViewId(1, A), ())
    log.add(ViewChange(view, (), ()))
    log.add(batch(A, 1, b"x"))
    assert log.views == [view]
    assert len(log.delivered) == 1
    assert len(log.events) == 1, "batches are not kept"
