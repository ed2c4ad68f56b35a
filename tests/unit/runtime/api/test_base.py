"""What an application may give as messages, and what becomes of it."""

import pytest

from ringcast.runtime.api.base import checked_payload, checked_payloads


def test_bytes_are_taken_as_they_are() -> None:
    messages = [b"one", b"two"]
    taken = checked_payloads(messages)
    assert taken == messages
    assert all(a is b for a, b in zip(taken, messages, strict=True))


def test_the_list_is_not() -> None:
    messages = [b"one", b"two"]
    taken = checked_payloads(messages)
    messages.clear()
    assert taken == [b"one", b"two"]


def test_any_iterable_will_do() -> None:
    assert checked_payloads(b"%d" % n for n in range(3)) == [b"0", b"1", b"2"]
    assert checked_payloads((b"a", bytearray(b"b"), memoryview(b"c"))) == [b"a", b"b", b"c"]
    assert checked_payloads([]) == []


def test_what_can_be_written_to_is_copied() -> None:
    content = bytearray(b"old")
    taken = [checked_payload(content), checked_payload(memoryview(content))]
    content[:] = b"new"
    assert taken == [b"old", b"old"]
    content.clear()  # Nobody holds it.


def test_a_view_that_cannot_is_sent_from_where_it_is() -> None:
    content = bytearray(b"old" * 4_096)
    taken = checked_payload(memoryview(content).toreadonly())
    content[:3] = b"new"
    assert taken[:3] == b"new"


def test_a_small_view_is_copied() -> None:
    assert type(checked_payload(memoryview(b"small"))) is bytes


def test_views_of_any_shape_become_bytes() -> None:
    numbers = memoryview(b"\x01\x02\x03\x04")
    assert checked_payload(numbers.cast("H")) == b"\x01\x02\x03\x04"
    assert checked_payload(numbers[::2]) == b"\x01\x03"
    assert checked_payload(numbers[:0]) == b""


@pytest.mark.parametrize("wrong", [b"one", bytearray(b"one"), memoryview(b"one"), "one"])
def test_one_message_is_no_list(wrong: bytes) -> None:
    with pytest.raises(TypeError, match="use send for one"):
        checked_payloads(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["text", 5, None, [b"x"]])
def test_what_is_no_message(wrong: object) -> None:
    for check in (lambda: checked_payload(wrong), lambda: checked_payloads([b"x", wrong])):  # type: ignore[arg-type, list-item]
        with pytest.raises(TypeError, match="a message is bytes, not"):
            check()
