"""Memory for large messages: the owner of a stack may lend it, and a stack works without."""

import pytest

from ringcast.core.model.buffers import Buffers, NoBuffers
from ringcast.runtime.net.buffer_pool import LARGE_BYTES, BufferPool


@pytest.mark.parametrize("size", [0, 1, 1 << 40])
def test_no_buffers_lend_nothing_and_have_nothing_to_give_back(size: int) -> None:
    buffers: Buffers = NoBuffers()
    assert buffers.lend(size) is None
    assert buffers.tidy() is False


def test_the_pool_of_a_member_lends_what_was_asked_for() -> None:
    buffers: Buffers = BufferPool()
    buffer = buffers.lend(LARGE_BYTES)
    assert buffer is not None
    buffer.prepare(LARGE_BYTES)
    assert len(buffer.view) >= LARGE_BYTES
    buffer.view[:4] = b"data"
    assert bytes(buffer.view[:4]) == b"data"
