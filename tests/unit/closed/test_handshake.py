"""A connection's hello proves the key on both sides, and a recorded one gets nobody anywhere."""

from __future__ import annotations

import pytest

from ringcast.closed.handshake import Handshake
from ringcast.closed.keys import Key
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address
from ringcast.errors import Malformed, RemoteError, Replayed, Unsealed, WrongKey, WrongVersion

OLD, NEW = Key(bytes(32)), Key(bytes(range(32)))
A, B = Address(71), Address(72)


def side(
    me: Address, is_caller: bool, *keys: Key, nonces: dict[bytes, None] | None = None
) -> Handshake:
    prover = GroupSeal(keys or (OLD,), "g", me)
    return Handshake(prover, me, is_caller, {} if nonces is None else nonces)


def test_both_sides_learn_who_the_other_is() -> None:
    caller, callee = side(A, True), side(B, False)
    assert callee.first == b""
    answer = callee.feed(caller.first)
    assert not callee.address
    confirmation = caller.feed(answer)
    assert callee.feed(confirmation) == b""
    assert (caller.address, callee.address) == (B, A)


def test_sides_in_different_phases_of_a_rotation_understand_each_other() -> None:
    caller, callee = side(A, True, NEW, OLD), side(B, False, OLD, NEW)
    callee.feed(caller.feed(callee.feed(caller.first)))
    assert (caller.address, callee.address) == (B, A)


def test_a_caller_without_the_key_gets_no_answer() -> None:
    with pytest.raises(WrongKey):
        side(B, False).feed(side(A, True, NEW).first)


def test_a_recorded_hello_gets_no_second_answer_and_no_connection() -> None:
    nonces: dict[bytes, None] = {}
    caller, callee = side(A, True), side(B, False, nonces=nonces)
    confirmation = caller.feed(callee.feed(caller.first))
    with pytest.raises(Replayed):
        side(B, False, nonces=nonces).feed(caller.first)
    elsewhere = side(Address(73), False)
    elsewhere.feed(caller.first)
    with pytest.raises(WrongKey):
        elsewhere.feed(confirmation)
    assert elsewhere.address is None


def test_a_recorded_answer_convinces_no_caller() -> None:
    answer = side(B, False).feed(side(A, True).first)
    with pytest.raises(WrongKey):
        side(A, True).feed(answer)


def test_every_flipped_bit_of_a_hello_is_noticed() -> None:
    hello = side(A, True).first
    for place in range(8 * len(hello)):
        spoilt = bytearray(hello)
        spoilt[place // 8] ^= 1 << place % 8
        with pytest.raises(RemoteError):
            side(B, False).feed(bytes(spoilt))


@pytest.mark.parametrize(
    ("begin", "error"),
    [(b"RCtc\x01", Unsealed), (b"HTTP\x01", Malformed), (b"RCts\x09", WrongVersion)],
)
def test_what_is_not_such_a_hello_is_named(begin: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        side(B, False).feed(begin + side(A, True).first[5:])


def test_a_caller_is_not_answered_by_itself() -> None:
    caller = side(A, True)
    with pytest.raises(WrongKey):
        caller.feed(caller.first)


def test_the_nonces_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.closed.handshake.NONCES_MAX", 3)
    nonces: dict[bytes, None] = {}
    for _ in range(10):
        side(B, False, nonces=nonces).feed(side(A, True).first)
    assert len(nonces) == 3
