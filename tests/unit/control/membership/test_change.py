"""One view change as its coordinator counts it: who has to answer, and what view follows."""

import pytest

from ringcast.control.membership.change import Change
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Ending, Flushed, Held, MergeReady, Section
from tests.unit.control.membership.bench import peer, view_of

PROPOSAL = ViewId(5, Address(1))
VIEW = view_of(4, 1, 2, 3, 4)


def change_of(departed: tuple[int, ...] = (), leavers: tuple[int, ...] = ()) -> Change:
    return Change(PROPOSAL, VIEW, map(Address, departed), map(Address, leavers), [peer(9)])


def answer(change: Change, member: int, sent: int, *held: Held) -> None:
    change.answer(Address(member), Flushed(PROPOSAL, sent, held))


def test_a_change_waits_for_all_but_the_departed() -> None:
    change = change_of(departed=(3,))
    answer(change, 1, 10)
    answer(change, 3, 10)
    assert change.silent == [2, 4]


def test_the_view_has_survivors_then_joiners_and_their_starts() -> None:
    change = change_of(departed=(3,), leavers=(4,))
    for member, sent in ((1, 10), (2, 20), (4, 40)):
        answer(change, member, sent)
    frame = change.install(())
    assert frame is not None
    assert frame.view.id == PROPOSAL
    assert frame.view.members == (1, 2, 9)
    assert frame.starts == (10, 20, 0)
    assert frame.sections == (Section(VIEW.id, (1, 2), (Ending(4, 40, 4, 0),)),)  # type: ignore[arg-type]


def test_the_survivor_that_is_furthest_gives_a_departed_senders_messages() -> None:
    change = change_of(departed=(3,))
    answer(change, 1, 10, Held(Address(3), 0, 7))
    answer(change, 2, 20, Held(Address(3), 2, 9))
    answer(change, 4, 40, Held(Address(3), 5, 6))
    assert change.section().endings == (Ending(Address(3), 9, Address(2), 5),)


def test_a_departed_sender_that_no_survivor_kept_enough_of_has_no_ending() -> None:
    change = change_of(departed=(3,))
    for member, handed in ((1, 7), (2, 9), (4, 6)):
        answer(change, member, 10, Held(Address(3), handed, handed))
    assert change.section().endings == ()


def test_a_merge_appends_the_other_group() -> None:
    change = change_of()
    for member in (1, 2, 3, 4):
        answer(change, member, member)
    other = Section(ViewId(8, Address(7)), (Address(7),), ())
    frame = change.install([MergeReady(PROPOSAL, (peer(7),), (70,), other)])
    assert frame is not None
    assert frame.view.members == (1, 2, 3, 4, 9, 7)
    assert frame.starts == (1, 2, 3, 4, 0, 70)
    assert frame.sections[1] == other


def test_when_all_leave_there_is_no_view() -> None:
    change = Change(PROPOSAL, view_of(4, 1), (), (Address(1),), ())
    answer(change, 1, 3)
    assert change.install(()) is None


def test_a_view_is_not_made_before_all_have_stopped() -> None:
    change = change_of()
    with pytest.raises(AssertionError, match="before all have stopped"):
        change.section()
