"""What must hold before and after each event is asserted."""

from collections.abc import Callable

import pytest

from ringcast.control.membership.invariants import check
from ringcast.control.membership.part import MembershipPart
from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address
from ringcast.core.model.view import NO_VIEW
from tests.unit.control.membership.bench import ME, MEMBERS_IN, installing, next_view, view_of


@pytest.mark.parametrize("state", State)
def test_the_invariants_hold_in_each_state(state: State) -> None:
    check(MEMBERS_IN[state]().part)


def _without_me(part: MembershipPart) -> None:
    part.view = view_of(9, 3, 7)


def _forgets_promise(part: MembershipPart) -> None:
    part.promised = NO_VIEW


def _suspects_itself(part: MembershipPart) -> None:
    part.departures.suspects.add(Address(ME))


def _waits_for_an_old_view(part: MembershipPart) -> None:
    part.participant.pending = (next_view(None, 3, ME, number=2), Address(3))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_without_me, "not in its view"),
        (_forgets_promise, "highest proposal"),
        (_suspects_itself, "absent in its own view"),
        (_waits_for_an_old_view, "not above the installed one"),
    ],
)
def test_a_broken_invariant_is_noticed(
    spoil: Callable[[MembershipPart], None], sentence: str
) -> None:
    bench = installing()
    spoil(bench.part)
    with pytest.raises(AssertionError, match=sentence):
        check(bench.part)
