"""The leaver: it goes once the others have its messages and a view without it."""

from ringcast.core.model.address import Address
from ringcast.core.wire.frames import Ending, Install, Section
from tests.unit.control.membership.bench import ME, OLD, SPEC, Bench, following, view_of


def leaving() -> Bench:
    bench = following()
    bench.part.leave()
    bench.sent()
    return bench


def without_me(*endings: Ending) -> Install:
    section = Section(OLD.id, (Address(3), Address(7)), endings)
    return Install(view_of(5, 3, 7), (0, 0), (section,))


def test_a_leaver_waits_until_the_others_have_its_messages() -> None:
    bench = following()
    bench.drained = False
    bench.part.leave()
    bench.wake("leave")
    assert bench.kinds() == []
    bench.drained = True
    bench.wake("leave")
    assert bench.kinds() == ["LEAVE to 3"]


def test_a_leaver_does_not_wait_for_messages_forever() -> None:
    bench = following()
    bench.drained = False
    bench.part.leave()
    bench.env.now += SPEC.drain_timeout
    bench.wake("leave")
    assert bench.kinds() == ["LEAVE to 3"]


def test_a_leaver_goes_without_an_answer_in_the_end() -> None:
    bench = leaving()
    bench.env.now += SPEC.drain_timeout + SPEC.leave_timeout + 0.1
    bench.wake("leave")
    assert bench.closed == "left, though no member has answered"


def test_a_leaver_is_gone_when_it_sees_the_view_without_it() -> None:
    bench = leaving()
    bench.receive(without_me(), 3)
    assert bench.closed == "left"


def test_a_leaver_stays_for_members_that_get_messages_from_it() -> None:
    bench = leaving()
    bench.receive(without_me(Ending(Address(9), 4, Address(ME), 0)), 3)
    assert bench.closed == ""
    bench.wake("leave")
    assert bench.closed == "left"


def test_a_leaver_stays_for_a_skipped_member_that_has_not_heard_of_its_gap() -> None:
    bench = leaving()
    bench.owes_news = True
    bench.receive(without_me(Ending(Address(ME), 4, Address(ME), 0)), 3)
    assert bench.closed == ""
    bench.wake("leave")
    assert bench.closed == "left"


def test_the_last_member_leaves_at_once() -> None:
    bench = following(view_of(1, ME))
    bench.part.leave()
    assert bench.closed == "left"
