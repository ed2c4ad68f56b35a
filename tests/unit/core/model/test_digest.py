"""Digests: the lowest and the highest marks over several members."""

from ringcast.core.model.address import Address
from ringcast.core.model.digest import Digest, Marks

A, B = Address(1), Address(2)


def test_the_minimum_has_only_senders_that_all_digests_have() -> None:
    one = Digest({A: Marks(1, 5, 9), B: Marks(0, 0, 3)})
    two = Digest({A: Marks(2, 4, 8)})
    assert Digest.minimum([one, two]) == Digest({A: Marks(1, 4, 8)})
    assert Digest.minimum([]) == Digest()


def test_the_maximum_has_every_sender_of_any_digest() -> None:
    one = Digest({A: Marks(1, 5, 9), B: Marks(0, 0, 3)})
    two = Digest({A: Marks(2, 4, 8)})
    assert Digest.maximum([one, two]) == Digest({A: Marks(2, 5, 9), B: Marks(0, 0, 3)})


def test_it_reads_like_a_mapping() -> None:
    digest = Digest({A: Marks(1, 2, 3)})
    assert len(digest) == 1
    assert digest[A].delivered == 2
    assert repr(digest) == "Digest(1: 1/2/3)"
