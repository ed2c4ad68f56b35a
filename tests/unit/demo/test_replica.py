"""The replicated state: what two members have in common is equal, and what one lacks is seen."""

from ringcast.demo.member import payloads
from ringcast.demo.replica import UNITED, Replica


def test_messages_in_any_order_of_senders_make_the_same_state() -> None:
    one, other = Replica(), Replica()
    one.apply([*payloads("a", 0, 40, 100), *payloads("b", 0, 7, 100)])
    other.apply([*payloads("b", 0, 7, 100), *payloads("a", 0, 40, 100)])
    assert one.digest == other.digest
    assert len(one) == 2


def test_a_lost_message_is_seen() -> None:
    one, other = Replica(), Replica()
    messages = payloads("a", 0, 40, 100)
    one.apply(messages)
    other.apply([*messages[:-3], *messages[-2:]])
    assert one.digest != other.digest


def test_a_newcomer_has_the_state_of_members_that_are_gone() -> None:
    old, newcomer = Replica(), Replica()
    old.apply(payloads("gone", 0, 5, 100))
    newcomer.unite(old.pack())
    for replica in (old, newcomer):
        replica.apply(payloads("a", 0, 3, 100))
    assert old.digest == newcomer.digest


def test_two_sides_of_a_partition_are_equal_once_both_have_told_their_states() -> None:
    sides = left, right = Replica(), Replica()
    left.apply(payloads("a", 0, 20, 100))
    right.apply(payloads("b", 0, 30, 100))
    told = [UNITED + side.pack() for side in sides]
    for side in sides:
        side.apply(told)
    assert left.digest == right.digest


def test_what_is_no_number_changes_nothing() -> None:
    replica = Replica()
    before = replica.digest
    replica.apply([b"done", b"a b", b""])
    assert replica.digest == before
