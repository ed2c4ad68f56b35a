"""The joiner: it searches, asks, and creates a group when none is found."""

from ringcast.control.membership.joiner import JOINS_MAX, RIVALS_MAX, ROUNDS_MAX, TARGETS_MAX
from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.frames import Evict, Install, Join
from tests.unit.control.membership.bench import SPEC, Bench, joining, peer, searching, view_of


def rival(bench: Bench, number: int) -> None:
    """Another joiner is heard."""
    bench.part.found(peer(number), NO_VIEW, peer(number))


def test_a_later_view_names_another_coordinator() -> None:
    bench = joining()
    bench.part.found(peer(4), ViewId(3, Address(4)), peer(4))
    assert bench.kinds() == [], "an older view changes nothing"
    bench.part.found(peer(4), ViewId(6, Address(4)), peer(4))
    assert bench.kinds() == ["JOIN to 4"]


def test_a_coordinator_that_does_not_answer_is_given_up() -> None:
    bench = joining()
    for _ in range(JOINS_MAX - 1):
        bench.wake("join")
    assert bench.kinds() == ["JOIN to 3"] * (JOINS_MAX - 1)
    bench.wake("join")
    assert bench.is_in(State.SEARCHING)
    assert bench.env.timers.is_set(bench.part, "decide")


def test_a_joiner_that_heard_of_a_group_lets_rounds_pass_before_it_creates_one() -> None:
    bench = joining()
    bench.when_alone = "create"
    for _ in range(JOINS_MAX):
        bench.wake("join")
    for _ in range(ROUNDS_MAX):
        bench.wake("decide")
        assert bench.is_in(State.SEARCHING)
    bench.wake("decide")
    assert bench.is_in(State.COORDINATING)


def test_a_rival_with_a_lower_address_goes_first() -> None:
    bench = searching()
    bench.when_alone = "create"
    for _ in range(ROUNDS_MAX):
        rival(bench, 2)
        bench.wake("decide")
        assert bench.is_in(State.SEARCHING)
    rival(bench, 2)
    bench.wake("decide")
    assert bench.is_in(State.COORDINATING), "a rival that does nothing is not waited for"
    assert bench.kinds() == ["PRESENT to 2", "PRESENT to all"]


def test_a_joiner_that_was_told_to_fail_says_what_it_tried() -> None:
    bench = searching()
    bench.when_alone = "fail"
    bench.wake("decide")
    assert bench.closed == "no group found: tried multicast"


def test_a_joiner_that_its_coordinator_refuses_closes_with_the_reason() -> None:
    bench = joining()
    bench.receive(Evict(bench.env.me, "its stack differs"), 7)
    assert bench.closed == "", "only the coordinator that was asked can refuse"
    bench.receive(Evict(bench.env.me, "its stack differs"), 3)
    assert bench.closed == "its stack differs"


def test_a_view_without_the_joiner_is_not_installed() -> None:
    bench = searching()
    view = view_of(3, 3, 7)
    bench.receive(Install(view, (0, 0), ()), 3)
    assert bench.view is None


def test_a_view_that_the_joiner_never_asked_for_is_not_installed() -> None:
    bench = searching()
    bench.receive(Install(view_of(3, 3, 5), (0, 0), ()), 3)
    assert bench.view is None


def test_a_view_of_a_coordinator_that_has_left_it_is_installed() -> None:
    bench = joining()
    bench.receive(Install(view_of(5, 7, 5), (0, 0), ()), 3)
    assert bench.view is not None


def test_a_cookie_is_brought_back_at_once() -> None:
    bench = joining()
    here = ViewId(4, Address(3))
    bench.part.found(peer(3), here, peer(3), 77)
    assert bench.sent() == [(3, Join(peer(5), "", 77))]
    bench.part.found(peer(3), here, peer(3), 77)
    assert bench.kinds() == [], "the same cookie is not brought twice"
    bench.wake("join")
    assert bench.sent() == [(3, Join(peer(5), "", 77))]


def test_a_cookie_of_another_member_is_not_for_the_coordinator() -> None:
    bench = joining()
    bench.part.found(peer(7), ViewId(4, Address(3)), peer(3), 77)
    assert bench.kinds() == []
    bench.part.found(peer(7), ViewId(6, Address(4)), peer(4), 78)
    assert bench.sent() == [(4, Join(peer(5), "", 0))]


def test_a_joiner_waits_twice_as_long_after_each_question_up_to_the_bound() -> None:
    bench = joining()
    pauses = [bench.seconds_to("join")]
    for _ in range(4):
        bench.wake("join")
        pauses.append(bench.seconds_to("join"))
    assert pauses == [0.1, 0.2, 0.4, SPEC.retry_max, SPEC.retry_max]


def test_a_coordinator_that_is_heard_while_it_is_busy_is_asked_for_longer() -> None:
    bench = joining()
    for _ in range(JOINS_MAX - 2):
        bench.wake("join")
    bench.part.found(peer(3), ViewId(4, Address(3)), peer(3))
    bench.sent()
    for _ in range(JOINS_MAX // 2):
        bench.wake("join")
    assert bench.kinds() == ["JOIN to 3"] * (JOINS_MAX // 2)
    bench.wake("join")
    assert bench.is_in(State.SEARCHING)


def test_an_answer_without_a_cookie_does_not_replace_the_one_that_came() -> None:
    bench = joining()
    here = ViewId(4, Address(3))
    bench.part.found(peer(3), here, peer(3), 77)
    bench.part.found(peer(3), here, peer(3), 0)
    bench.sent()
    bench.wake("join")
    assert bench.sent() == [(3, Join(peer(5), "", 77))]


def test_a_joiner_that_waits_decides_again_within_a_fifth_more_than_the_timeout() -> None:
    bench = searching()
    for _ in range(20):
        assert bench.timeout <= bench.seconds_to("decide") <= 1.2 * bench.timeout
        bench.wake("decide")
    assert bench.is_in(State.SEARCHING)


def test_rivals_and_coordinators_that_were_asked_are_bounded() -> None:
    bench = searching()
    for number in range(RIVALS_MAX + 10):
        rival(bench, 1_000 + number)
    assert len(bench.part.joiner._rivals) == RIVALS_MAX
    for number in range(4, TARGETS_MAX + 20):
        bench.part.found(peer(number), ViewId(number, Address(number)), peer(number))
    assert len(bench.part.joiner._targets) == TARGETS_MAX
