"""A published view is repeated until each member has confirmed it."""

from ringcast.control.membership.publication import DIRECT_MAX, Publication
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from tests.unit.control.membership.bench import ME, OWN, coordinating, next_view


def test_newcomers_and_leavers_get_the_view_directly_too() -> None:
    bench = coordinating()
    Publication(bench.part).send(next_view(OWN, ME, 3, 9), [Address(7)])
    assert bench.kinds() == ["VIEW to all", "VIEW to 9", "VIEW to 7"]


def test_many_newcomers_rely_on_repeats() -> None:
    bench = coordinating()
    newcomers = range(100, 101 + DIRECT_MAX)
    Publication(bench.part).send(next_view(OWN, ME, 3, 7, *newcomers), [])
    assert bench.kinds() == ["VIEW to all"]


def test_only_members_that_have_not_confirmed_get_it_again() -> None:
    bench = coordinating()
    publication = Publication(bench.part)
    publication.send(next_view(OWN, ME, 3, 7), [])
    bench.sent()
    assert not publication.confirm(Address(3), ViewId(4, Address(ME))), "that is another view"
    assert publication.confirm(Address(3), ViewId(5, Address(ME)))
    publication.repeat()
    assert bench.kinds() == ["VIEW to 7"]
    publication.withdraw()
    assert publication.is_confirmed


def test_as_many_newcomers_as_are_told_directly_get_the_view_so() -> None:
    bench = coordinating()
    newcomers = range(100, 100 + DIRECT_MAX)
    Publication(bench.part).send(next_view(OWN, ME, 3, 7, *newcomers), [])
    assert bench.kinds() == ["VIEW to all", *(f"VIEW to {number}" for number in newcomers)]
