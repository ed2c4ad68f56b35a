"""What the membership believes of processes outside the view: cookies, numbers, former members."""

from random import Random

import pytest

from ringcast.control.membership.admission import (
    COOKIE_SECONDS,
    FORMER_MAX,
    NUMBER_STEP_MAX,
    Admission,
)
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import Frame, Install, Join, Merge, Prepare, Refused
from ringcast.core.wire.layout import VIEW_NUMBER_MAX
from tests.unit.control.membership.bench import (
    OWN,
    Bench,
    coordinating,
    following,
    joining,
    peer,
    view_of,
)

FAR = ViewId(2**61, Address(3))


def admission(seed: int = 1) -> Admission:
    return Admission(Env(peer(5), Random(seed)))


# Cookies -----------------------------------------------------------------------------------------


def test_a_cookie_is_for_one_joiner_at_one_member() -> None:
    gate, other = admission(), admission(2)
    cookie = gate.cookie(peer(9))
    assert gate.has_proved(peer(9), cookie)
    assert not gate.has_proved(peer(8), cookie)
    assert not gate.has_proved(peer(9)._replace(endpoint="elsewhere:1"), cookie)
    assert not other.has_proved(peer(9), cookie)
    assert not gate.has_proved(peer(9), 0)


def test_a_cookie_is_good_for_one_to_two_slots() -> None:
    env = Env(peer(5), Random(1))
    gate = Admission(env)
    cookie = gate.cookie(peer(9))
    env.now = COOKIE_SECONDS
    assert gate.has_proved(peer(9), cookie)
    env.now = 2 * COOKIE_SECONDS
    assert not gate.has_proved(peer(9), cookie)


def test_a_join_without_a_cookie_gets_one_and_nothing_else() -> None:
    bench = coordinating()
    bench.receive(Join(peer(9), "", 0), 9)
    bench.receive(Join(peer(9), "another stack", 1), 9)
    assert bench.kinds() == ["PRESENT to 9", "PRESENT to 9"]
    assert not bench.env.timers.is_set(bench.part, "gather")
    bench.join(9)
    assert bench.env.timers.is_set(bench.part, "gather")


def test_a_join_in_the_name_of_another_process_is_ignored() -> None:
    bench = coordinating()
    bench.receive(Join(peer(9), "", bench.part.cookie(peer(9))), 8)
    assert bench.kinds() == []
    assert not bench.env.timers.is_set(bench.part, "gather")


# Numbers -----------------------------------------------------------------------------------------


def next_number(bench: Bench) -> int:
    """The number of the view that this coordinator proposes next."""
    bench.join(9)
    bench.wake("gather")
    prepared = [frame for _, frame in bench.sent() if isinstance(frame, Prepare)]
    return prepared[0].proposal.number


@pytest.mark.parametrize("source", [9, 3])
@pytest.mark.parametrize(
    "frame",
    [
        Prepare(FAR, OWN.id, (), 1),
        Prepare(FAR, ViewId(3, Address(3)), (), 1),
        Merge(ViewId(2**61, Address(9)), OWN.id, ""),
        Refused(OWN.id, OWN.id, FAR),
        Install(view_of(2**61, 3, 5), (0, 0), ()),
    ],
)
def test_a_number_that_no_group_reaches_changes_nothing(frame: Frame, source: int) -> None:
    bench = coordinating()
    bench.receive(frame, source)
    assert bench.env.counters["dropped_view_number"] == 1
    assert bench.kinds() == []
    assert next_number(bench) == OWN.id.number + 1


def test_a_stranger_does_not_raise_the_number() -> None:
    bench = coordinating()
    bench.receive(Prepare(ViewId(900, Address(9)), OWN.id, (), 0), 9)
    assert next_number(bench) == OWN.id.number + 1


def test_another_group_with_a_number_that_no_group_reaches_is_not_found() -> None:
    bench = coordinating()
    bench.find(9, ViewId(2**61, Address(9)))
    assert not bench.env.timers.is_set(bench.part, "gather")
    bench.find(9, ViewId(1_000, Address(9)))
    assert bench.env.timers.is_set(bench.part, "gather")


def test_the_own_number_stays_one_that_others_believe() -> None:
    bench = coordinating()
    highest = OWN.id.number + NUMBER_STEP_MAX
    bench.receive(Prepare(ViewId(highest, Address(3)), ViewId(1, Address(3)), (), 0), 3)
    bench.sent()
    assert next_number(bench) <= highest


def test_a_joiner_believes_what_leaves_room_for_more() -> None:
    gate = admission()
    assert gate.number_max == VIEW_NUMBER_MAX // 2
    bench = joining()
    bench.receive(Install(view_of(VIEW_NUMBER_MAX, 3, 5), (0, 0), ()), 3)
    assert bench.view is None


# Former members ----------------------------------------------------------------------------------


def test_former_members_are_known_and_bounded() -> None:
    gate = admission()
    for number in range(2 * FORMER_MAX):
        gate.start_view(view_of(number + 2, 5), view_of(number + 1, 5, number + 100))
    assert gate.knows(Address(2 * FORMER_MAX + 99))
    assert not gate.knows(Address(100))
    gate.start_view(view_of(5_000, 5, 2 * FORMER_MAX + 99), view_of(4_999, 5))
    assert not gate.knows(Address(2 * FORMER_MAX + 99)), "it is back"
    assert not gate.knows(Address(5))


def test_the_view_is_told_to_former_members_only() -> None:
    bench = following()
    assert not bench.part.admission.knows(Address(9))


def test_another_group_counts_once_its_coordinator_has_brought_back_a_cookie() -> None:
    bench = coordinating()
    other = ViewId(8, Address(9))
    bench.part.found(peer(9), other, peer(9))
    assert bench.kinds() == ["PRESENT to 9"], "it is given a cookie"
    bench.part.found(peer(9), other, peer(9), 7, 12345)
    assert bench.kinds() == [], "a wrong cookie is not answered, or two groups would not stop"
    assert not bench.env.timers.is_set(bench.part, "gather")
    bench.find(9, other)
    assert bench.env.timers.is_set(bench.part, "gather")


def test_a_coordinator_that_others_tell_of_is_asked_itself() -> None:
    bench = coordinating()
    bench.part.found(peer(11), ViewId(8, Address(9)), peer(9), 7, bench.part.cookie(peer(11)))
    assert bench.kinds() == ["PRESENT to 9"]
    assert not bench.env.timers.is_set(bench.part, "gather")


@pytest.mark.parametrize("above", [0, 1])
def test_the_highest_number_is_believed_and_the_next_is_not(above: int) -> None:
    gate = admission()
    gate.start_view(OWN, None)
    number = gate.number_max + above
    last = ViewId(number, Address(3))
    frames = [
        Prepare(last, OWN.id, (), 1),
        Merge(last, OWN.id, ""),
        Refused(OWN.id, OWN.id, last),
        Install(view_of(number, 3, 5), (0, 0), ()),
    ]
    assert [gate.believes(frame) for frame in frames] == [not above] * 4
