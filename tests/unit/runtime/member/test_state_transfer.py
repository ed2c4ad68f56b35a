"""The chunks of a state are what they were when it was asked for, whatever becomes of them."""

from collections.abc import AsyncIterator, Iterator

import pytest

from ringcast.runtime.member.state_transfer import StateValue, chunks_of, frozen, next_of


def chunks(made: StateValue) -> Iterator[bytes]:
    begun = chunks_of(made)
    assert isinstance(begun, Iterator)
    first = next_of(begun)
    while first is not None:
        yield bytes(first)
        first = next_of(begun)


def test_a_list_that_grows_while_it_is_sent() -> None:
    history = [b"1", b"2"]
    given = chunks(history)
    assert next(given) == b"1"
    history.append(b"3")
    assert list(given) == [b"2"]


def test_the_values_of_a_dictionary_that_grows() -> None:
    prices = {"a": b"1", "b": b"2"}
    given = chunks(prices.values())
    assert next(given) == b"1"
    prices["c"] = b"3"
    assert list(given) == [b"2"]


def test_what_can_be_written_to_is_copied() -> None:
    content = bytearray(b"old")
    for made in (content, memoryview(content), [content]):
        begun = chunks_of(made)
        assert isinstance(begun, Iterator)
        first = next_of(begun)
        content[:] = b"new"
        assert first == b"old"
        content[:] = b"old"


def test_what_cannot_is_not() -> None:
    for chunk in (b"whole", memoryview(b"whole"), memoryview(bytearray(b"whole")).toreadonly()):
        assert frozen(chunk) is chunk


def test_a_generator_is_asked_chunk_by_chunk() -> None:
    asked: list[int] = []

    def make() -> Iterator[bytes]:
        for number in range(3):
            asked.append(number)
            yield b"%d" % number

    given = chunks(make())
    assert next(given) == b"0"
    assert asked == [0]
    assert list(given) == [b"1", b"2"]


def test_an_asynchronous_one_stays_what_it_is() -> None:
    async def make() -> AsyncIterator[bytes]:
        yield b""

    assert isinstance(chunks_of(make()), AsyncIterator)


def test_what_is_no_state() -> None:
    for made in ("text", {"a": b"1"}, 5):
        with pytest.raises(TypeError, match="a state is bytes, or chunks of bytes"):
            chunks_of(made)  # type: ignore[arg-type]
