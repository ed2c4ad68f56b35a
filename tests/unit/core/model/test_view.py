"""Views: who is in the group, by seniority."""

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId


def view(number: int = 1) -> View:
    peers = (Peer(Address(7), "seven", "h:7"), Peer(Address(3), "three", "h:3"))
    return View(ViewId(number, Address(7)), peers)


def test_the_first_member_coordinates() -> None:
    assert view().coordinator == 7
    assert view().members == (7, 3)
    assert [view().rank(member) for member in view()] == [0, 1]
    assert Address(3) in view()
    assert Address(4) not in view()


def test_names_live_in_the_view() -> None:
    assert view().name(Address(3)) == "three"
    assert view().name(Address(0xAB)) == "ab"
    assert repr(view()) == "View(1@7: seven, three)"


def test_views_are_ordered_by_number_then_coordinator() -> None:
    assert view(1).id < view(2).id < ViewId(2, Address(8))
    assert view(1) == view(1)
    assert view(1) != view(2)
    assert len({view(1), view(1)}) == 1


def test_the_text_of_a_large_view_names_the_first_members() -> None:
    peers = tuple(Peer(Address(n + 1), f"m{n}", "") for n in range(1_050))
    assert repr(View(ViewId(3, Address(1)), peers[:2])) == f"View({ViewId(3, Address(1))}: m0, m1)"
    text = repr(View(ViewId(3, Address(1)), peers))
    assert text.endswith("m48, m49, and 1,000 more)")
