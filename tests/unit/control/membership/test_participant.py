"""The participant: it answers one proposal at a time and installs only what follows its view."""

from ringcast.control.membership.transitions import State
from ringcast.core.model.address import Address
from ringcast.core.model.events import Expelled
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.frames import Evict, Install, Installed, Prepare, Refused, Section
from tests.unit.control.membership.bench import (
    ME,
    OLD,
    OWN,
    SPEC,
    departed,
    following,
    installing,
    merging,
    next_view,
    peer,
    stopped,
    view_of,
)


def test_a_lower_proposal_is_refused_with_the_higher_one() -> None:
    bench = stopped()
    bench.receive(Prepare(ViewId(4, Address(7)), OLD.id, (), 0), 7)
    assert bench.sent() == [(7, Refused(ViewId(4, Address(7)), OLD.id, ViewId(5, Address(3))))]


def test_a_member_that_is_declared_dead_does_not_answer() -> None:
    bench = following()
    bench.receive(Prepare(ViewId(5, Address(3)), OLD.id, (Address(ME),), 0), 3)
    assert bench.kinds() == []
    assert bench.env.counters["declared_dead"] == 1


def test_a_proposal_for_an_older_view_is_answered_with_this_one() -> None:
    bench = following()
    bench.receive(Prepare(ViewId(5, Address(3)), ViewId(3, Address(3)), (), 0), 3)
    assert bench.kinds() == ["INSTALLED to 3", "VIEW to 3"]


def test_a_coordinator_that_goes_on_alone_uses_no_number_that_it_has_published() -> None:
    """Two views with one name: the members of the published one may have installed it."""
    bench = departed()
    published = ViewId(5, Address(ME))
    for _ in range(2):
        bench.wake("stuck")
    assert bench.view is not None
    assert bench.view.members == (ME,)
    assert bench.view.id > published


def test_a_view_that_does_not_follow_is_not_installed() -> None:
    bench = following()
    frame = next_view(OLD, 3, ME, 7, number=9)
    skipping = Install(frame.view, frame.starts, ())
    bench.receive(skipping, 3)
    assert bench.kinds() == ["INSTALLED to 3"]
    assert bench.aims == []


def test_the_same_view_is_aimed_at_once() -> None:
    bench = installing()
    bench.receive(next_view(OLD, 3, ME, 7), 3)
    assert bench.aims == [ViewId(5, Address(3))]
    assert bench.seconds_to("stuck") == SPEC.change_timeout
    bench.part.reached()
    assert bench.view is not None
    assert bench.view.id == ViewId(5, Address(3))
    assert bench.installed[-1].starts == {3: 3, ME: 3, 7: 3}


def test_a_view_below_the_promise_counts_only_from_its_holder() -> None:
    bench = following()
    bench.receive(Prepare(ViewId(9, Address(7)), OLD.id, (), 0), 7)
    bench.receive(next_view(OLD, 3, ME, 7), 3)
    assert bench.is_in(State.STOPPED)
    assert bench.kinds() == ["FLUSHED to 7", "INSTALLED to 7"], "the holder is asked for its view"
    bench.receive(next_view(OLD, 3, ME, 7), 7)
    assert bench.is_in(State.INSTALLING)


def test_a_promise_to_a_member_that_went_on_alone_does_not_bind() -> None:
    bench = following()
    bench.receive(Prepare(ViewId(9, Address(7)), OLD.id, (), 0), 7)
    bench.receive(next_view(OLD, 7, number=10), 7)
    bench.receive(next_view(OLD, 3, ME), 3)
    assert bench.is_in(State.INSTALLING), "the holder of the promise makes no view with this one"


def test_a_member_without_a_view_to_come_goes_on_alone_the_second_time() -> None:
    bench = stopped()
    bench.wake("stuck")
    assert bench.is_in(State.STOPPED)
    assert bench.part.promised == OLD.id, "any view that follows will do"
    bench.wake("stuck")
    assert bench.view is not None
    assert bench.view.members == (ME,)
    assert [event.reason for event in bench.events if isinstance(event, Expelled)] == [
        "the next view did not come"
    ]


def test_a_view_without_this_member_means_that_the_others_went_on() -> None:
    bench = following()
    bench.receive(Evict(Address(ME), "it is slow"), 3)
    bench.receive(next_view(OLD, 3, 7), 3)
    assert bench.part.departures.elsewhere == {3, 7}
    bench.reaches_at_once = True
    bench.wake("gather")
    assert [event.reason for event in bench.events if isinstance(event, Expelled)] == [
        "evicted: it is slow"
    ]


def test_a_member_that_cannot_come_over_is_elsewhere() -> None:
    bench = following()
    bench.receive(Installed(ViewId(2, Address(9))), 7)
    assert bench.part.departures.elsewhere == {7}


def test_a_member_that_has_no_view_yet_is_given_this_one() -> None:
    bench = following()
    bench.receive(Installed(NO_VIEW), 7)
    assert bench.kinds() == ["VIEW to 7"]


def test_only_a_member_of_a_later_view_is_asked_for_it() -> None:
    bench = following()
    bench.part.found(peer(7), OLD.id, peer(3))
    assert bench.kinds() == []
    bench.part.found(peer(7), ViewId(5, Address(3)), peer(3))
    assert bench.kinds() == ["INSTALLED to 7"]


def test_the_view_that_is_installed_is_confirmed_again() -> None:
    bench = following()
    bench.receive(next_view(None, 3, ME, 7, number=4), 3)
    assert bench.kinds() == ["INSTALLED to 3"]
    bench.receive(next_view(None, 3, ME, 7, number=3), 3)
    assert bench.kinds() == [], "an older one needs no answer"


def test_the_view_of_the_proposal_may_come_from_another_member() -> None:
    bench = stopped()
    bench.receive(next_view(OLD, 3, ME, 7), 7)
    assert bench.is_in(State.INSTALLING)


def test_a_merged_view_that_leaves_this_member_out_names_those_that_went_on() -> None:
    bench = merging()
    other = Section(ViewId(8, Address(1)), (Address(1),), ())
    mine = Section(OWN.id, (Address(3),), ())
    bench.receive(Install(view_of(9, 1, 3), (0, 0), (other, mine)), 1)
    assert bench.part.departures.elsewhere == {3}


def test_a_stranger_that_claims_a_view_is_contradicted() -> None:
    bench = following()
    later = ViewId(6, Address(9))
    bench.receive(Installed(later), 9)
    assert bench.sent() == [(9, Refused(later, OLD.id, OLD.id))]
    bench.receive(Installed(later), 7)
    assert bench.kinds() == [], "a member may be ahead"


def test_only_a_member_can_say_that_it_is_elsewhere() -> None:
    bench = following()
    refusal = Refused(OLD.id, ViewId(2, Address(9)), NO_VIEW)
    bench.receive(refusal, 9)
    assert bench.part.departures.elsewhere == set()
    bench.receive(refusal, 7)
    assert bench.part.departures.elsewhere == {7}


def test_a_stranger_that_admits_a_member_of_another_view_is_contradicted() -> None:
    """This member has asked it to be admitted, and others were faster: it must not wait for it."""
    bench = following()
    bench.receive(next_view(OLD, 9, ME, number=9), 9)
    assert bench.sent() == [(9, Refused(ViewId(9, Address(9)), OLD.id, OLD.id))]
    assert bench.aims == []
    bench.receive(next_view(OLD, 9, 8, number=9), 9)
    assert bench.kinds() == []


def test_a_member_that_the_view_leads_nowhere_for_is_elsewhere() -> None:
    """A broken member has given it another view than this one."""
    bench = following()
    bench.part.last_install = Install(
        OLD, (0, 0, 0), (Section(ViewId(3, Address(3)), (Address(ME),), ()),)
    )
    bench.receive(Installed(ViewId(3, Address(3))), 7)
    assert bench.part.is_elsewhere(Address(7))
