"""Whom to request messages from when their sender does not answer."""

from ringcast.core.model.ranges import RangeSet
from ringcast.layers.multicast.peer_repair import REQUESTS_TO_SENDER, SENDER_SECONDS, PeerRepair
from tests.unit.layers.multicast.parts import A, B, C, D, Parts, installation, run


class Receiver(Parts):
    """A member that lacks messages of B."""

    def __init__(self) -> None:
        super().__init__()
        self.group.install(installation(A, B, C, D, old=(A, B, C)))
        self.repair = PeerRepair(self.env, self.group)
        self.window = self.group.windows[B]

    def ask(self, first: int, last: int, pause: float = SENDER_SECONDS) -> object:
        self.env.now += pause
        return self.repair.target(B, RangeSet([(first, last)]))


def test_the_sender_is_asked_a_few_times_then_the_others_and_the_sender_in_turn() -> None:
    member = Receiver()
    member.window.expect(2)
    assert [member.ask(1, 2) for _ in range(REQUESTS_TO_SENDER)] == REQUESTS_TO_SENDER * [B]
    assert [member.ask(1, 2) for _ in range(7)] == [C, B, D, B, C, B, D]


def test_a_sender_that_answers_in_between_is_asked_alone_again() -> None:
    member = Receiver()
    member.window.expect(4)
    asked = [member.ask(1, 4) for _ in range(REQUESTS_TO_SENDER + 2)]
    assert asked[-1] == B
    member.window.put(run(1, 2))
    pause = SENDER_SECONDS / 100
    assert {member.ask(3, 4, pause) for _ in range(20)} == {B}


def test_another_member_is_asked_first_where_the_sender_was_not_heard_for_a_while() -> None:
    member = Receiver()
    member.repair.silent = frozenset({B})
    member.window.expect(2)
    assert member.ask(1, 2) == C
    assert member.repair.helped == {B}


def test_no_other_member_is_asked_while_the_answer_may_wait_in_a_queue() -> None:
    member = Receiver()
    member.window.expect(2)
    pause = SENDER_SECONDS / 100
    assert {member.ask(1, 2, pause) for _ in range(50)} == {B}


def test_messages_are_accepted_from_others_only_once_they_were_asked() -> None:
    member = Receiver()
    member.window.expect(2)
    for _ in range(REQUESTS_TO_SENDER):
        member.ask(1, 2)
        assert not member.repair.helped
    member.ask(1, 2)
    assert member.repair.helped == {B}


def test_requests_for_later_gaps_do_not_count_as_unanswered() -> None:
    member = Receiver()
    member.window.expect(99)
    assert {member.ask(first, first) for first in range(1, 50)} == {B}


def test_a_member_that_answers_is_asked_until_nothing_is_missing() -> None:
    member = Receiver()
    member.window.expect(4)
    for _ in range(REQUESTS_TO_SENDER + 1):
        member.ask(1, 4)
    member.window.put(run(1, 2))
    assert member.ask(3, 4) == C
    member.window.put(run(3, 2))
    member.window.expect(5)
    assert member.ask(5, 5) == B, "a new loss begins with the sender"


def test_a_new_view_begins_with_the_senders() -> None:
    member = Receiver()
    member.window.expect(2)
    for _ in range(REQUESTS_TO_SENDER + 1):
        member.ask(1, 2)
    member.repair.silent = frozenset({B})
    member.repair.clear()
    assert member.ask(1, 2) == B
    assert not member.repair.helped
    assert not member.repair.silent
