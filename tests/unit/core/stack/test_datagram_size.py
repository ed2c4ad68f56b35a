"""The size of datagrams: the least of three bounds, and where it comes from."""

from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.datagram_size import SIZE_MIN, DatagramSize


def peer(mtu: int) -> Peer:
    return Peer(Address(mtu + 1), "a", "a", mtu)


def test_the_own_bound_is_the_size_without_a_view() -> None:
    size = DatagramSize(1_472, is_given=False)
    assert (size.size, size.source) == (1_472, "interface")
    assert str(size) == "1,472 bytes (interface)"


def test_a_number_that_was_given_comes_from_the_user() -> None:
    assert DatagramSize(9_000, is_given=True).source == "user"


def test_the_least_of_the_members_is_the_size() -> None:
    size = DatagramSize(8_972, is_given=False)
    size.fit([peer(8_972), peer(1_472), peer(4_000)])
    assert (size.size, size.source) == (1_472, "view")
    size.fit([peer(8_972)])
    assert (size.size, size.source) == (8_972, "interface")


def test_members_that_take_more_or_say_nothing_change_nothing() -> None:
    size = DatagramSize(1_472, is_given=False)
    size.fit([peer(0), peer(60_000)])
    assert (size.size, size.source) == (1_472, "interface")


def test_a_member_cannot_ask_for_less_than_the_minimum() -> None:
    size = DatagramSize(1_472, is_given=False)
    size.fit([peer(1)])
    assert size.size == SIZE_MIN


def test_a_path_that_carries_less_is_the_size() -> None:
    size = DatagramSize(8_972, is_given=False)
    size.path = 1_400
    assert (size.size, size.source) == (1_400, "probe")
    size.is_refused = True
    assert size.source == "interface"
    size.fit([peer(1_200)])
    assert (size.size, size.source) == (1_200, "view")
