"""What the checks ask of messages to one member, and of what their senders are told."""

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, Batch
from ringcast.core.model.events import Undelivered
from ringcast.sim.checks.pairs import Pairs

A, B = Address(1), Address(2)


class Case:
    """Messages from A to B."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.pairs = Pairs(lambda _, text: self.found.append(text))

    def send(self, *payloads: bytes, flags: int = 0) -> None:
        self.pairs.sent(A, B, payloads, flags)

    def give(self, *payloads: bytes) -> None:
        self.pairs.delivered("b", Batch(A, payloads, sum(map(len, payloads)), dest=B))

    def tell(self, count: int) -> None:
        self.pairs.told(A, Undelivered(0, (B,), direct=True, count=count))

    @property
    def silences(self) -> list[int]:
        return [silence.messages for silence in self.pairs.silences(lambda member: member == A)]


@pytest.fixture
def case() -> Case:
    return Case()


def test_what_is_given_in_order_is_good_and_what_is_passed_over_is_not(case: Case) -> None:
    case.send(b"1", b"2", b"3")
    case.give(b"1")
    assert case.found == []
    case.give(b"3")
    assert len(case.found) == 1


def test_a_loss_that_the_sender_is_told_of_is_good(case: Case) -> None:
    case.send(b"1", b"2", b"3")
    case.give(b"1")
    case.pairs.parted(A, B)
    case.tell(2)
    assert case.silences == []


def test_a_loss_without_a_word_is_found_once(case: Case) -> None:
    case.send(b"1", b"2", b"3")
    case.pairs.parted(A, B)
    case.tell(1)
    assert case.silences == [2]
    assert case.silences == []


def test_a_loss_is_found_though_later_messages_arrive(case: Case) -> None:
    case.send(b"1", b"2")
    case.pairs.parted(A, B)
    case.send(b"3")
    case.give(b"3")
    assert case.silences == [2]


def test_nothing_is_asked_of_a_sender_that_has_its_receiver_in_the_view(case: Case) -> None:
    case.send(b"1")
    case.pairs.parted(B, A)
    assert case.silences == []
    case.pairs.parted(A, B)
    assert case.silences == [1]


def test_calls_are_not_counted(case: Case) -> None:
    case.send(b"1", flags=CALL)
    case.pairs.parted(A, B)
    assert case.silences == []
