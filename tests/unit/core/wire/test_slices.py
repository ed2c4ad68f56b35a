"""Payloads are cut as they lie, small ones as bytes and large ones as views."""

import pytest

from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE
from ringcast.core.wire.slices import CUT_MAX, cut_uniform, cut_varied

HEAD = b"head"


def content(size: int) -> bytes:
    return bytes(n % 251 for n in range(size))


@pytest.mark.parametrize("count", [1, CUT_MAX, CUT_MAX + 1, 2 * CUT_MAX + 3])
def test_small_messages_of_one_size_are_cut_as_bytes(count: int) -> None:
    data = content(3 * count)
    cut = cut_uniform(HEAD + data + b"tail", count, 3, len(HEAD))
    assert cut == [data[at : at + 3] for at in range(0, len(data), 3)]
    assert {type(payload) for payload in cut} == {bytes}


@pytest.mark.parametrize(
    ("size", "kind"), [(VIEW_PAYLOAD_SIZE - 1, bytes), (VIEW_PAYLOAD_SIZE, memoryview)]
)
def test_messages_are_views_from_a_size_on(size: int, kind: type) -> None:
    data = content(2 * size)
    for cut in (
        cut_uniform(HEAD + data, 2, size, len(HEAD)),
        cut_varied(HEAD + data, (size, size), len(HEAD)),
    ):
        assert cut == [data[:size], data[size:]]
        assert {type(payload) for payload in cut} == {kind}


def test_of_varied_messages_only_the_large_ones_are_views() -> None:
    sizes = (5, VIEW_PAYLOAD_SIZE, VIEW_PAYLOAD_SIZE - 1, 0)
    data = content(sum(sizes))
    cut = cut_varied(HEAD + data + b"tail", sizes, len(HEAD))
    assert b"".join(cut) == data
    assert [len(payload) for payload in cut] == list(sizes)
    assert [type(payload) for payload in cut] == [bytes, memoryview, bytes, bytes]


def test_messages_cut_from_borrowed_memory_stay_what_they_are() -> None:
    borrowed = bytearray(content(2 * VIEW_PAYLOAD_SIZE))
    kept = bytes(borrowed)
    uniform = cut_uniform(memoryview(borrowed), 2, VIEW_PAYLOAD_SIZE, 0)
    varied = cut_varied(memoryview(borrowed), (VIEW_PAYLOAD_SIZE,) * 2, 0)
    borrowed[:] = bytes(len(borrowed))
    assert b"".join(uniform) == b"".join(varied) == kept


def test_empty_messages_are_counted() -> None:
    assert cut_uniform(HEAD, 3, 0, len(HEAD)) == [b"", b"", b""]
