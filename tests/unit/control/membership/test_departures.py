"""Members that no longer take part: suspected, elsewhere or evicted."""

from ringcast.control.membership.departures import Departures
from ringcast.core.model.address import Address
from tests.unit.control.membership.bench import view_of

VIEW = view_of(1, 1, 2, 3, 4)
A, B, C, D = map(Address, (1, 2, 3, 4))


def test_a_member_that_is_heard_again_is_not_absent() -> None:
    departures = Departures()
    departures.suspect(B, True)
    departures.evicted[C] = "slow"
    assert departures.absent == {B, C}
    departures.suspect(B, False)
    assert departures.absent == {C}


def test_only_news_about_members_is_returned() -> None:
    departures = Departures()
    assert departures.note_elsewhere(VIEW, (B, Address(9))) == [B]
    assert departures.note_elsewhere(VIEW, (B,)) == []


def test_this_member_is_expelled_when_half_of_the_view_is_elsewhere() -> None:
    departures = Departures()
    departures.note_elsewhere(VIEW, (B,))
    assert departures.expelled == ""
    departures.note_elsewhere(VIEW, (C,))
    assert departures.take_expelled() == "the others went on without this member"
    assert departures.take_expelled() == "", "it is told once"


def test_an_evicted_member_knows_why() -> None:
    departures = Departures()
    departures.told_why("it is slow")
    departures.note_elsewhere(VIEW, (B, C, D))
    assert departures.expelled == "evicted: it is slow"
    assert departures.start_view(view_of(2, 1), frozenset({A}))


def test_a_new_view_keeps_suspects_that_came_over_and_reasons_for_the_evicted() -> None:
    departures = Departures()
    departures.suspect(B, True)
    departures.suspect(C, True)
    departures.evicted[D] = "slow"
    assert not departures.start_view(view_of(2, 1, 2, 3), frozenset({A, B}))
    assert departures.suspects == {B}
    assert departures.reasons == {D: "slow"}
    assert departures.evicted == {}


def test_one_of_three_that_is_elsewhere_does_not_expel_this_member() -> None:
    departures = Departures()
    departures.note_elsewhere(view_of(4, 3, 5, 7), [Address(3)])
    assert departures.take_expelled() == ""
