"""The flush before a view change: stop, report, fetch."""

from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Ending, Held
from ringcast.layers.multicast.view_flush import UNANSWERED_REQUESTS_MAX
from tests.unit.layers.multicast.parts import SPEC, A, B, C, D, Parts, installation, run

NEXT = ViewId(2, A)


def four_members() -> Parts:
    parts = Parts()
    parts.group.install(installation(A, B, C, D, old=(A, B, C)))
    return parts


def put(parts: Parts, *seqnos: int) -> None:
    for seqno in seqnos:
        parts.hand_up(B, parts.group.windows[B].put(run(seqno)))


def test_a_frozen_member_says_its_last_seqno_and_hands_up_nothing_of_the_departed() -> None:
    parts = Parts()
    parts.send(3)
    put(parts, 1)
    assert parts.flush.freeze([B, D]) == 3
    assert parts.flush.is_frozen
    put(parts, 2)
    assert parts.group.windows[B].handed == 1


def test_what_is_held_of_the_departed_is_reported() -> None:
    parts = Parts()
    put(parts, 1, 2, 4)
    assert parts.flush.held([B, D]) == (Held(B, 0, 2),)


def test_with_everything_there_the_aim_is_reached_at_once() -> None:
    parts = Parts()
    put(parts, 1, 2)
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0}, ())
    assert parts.membership.reached_count == 1
    assert not parts.flush.is_aiming


def test_missing_messages_are_requested_at_once_and_end_the_flush_when_they_arrive() -> None:
    parts = Parts()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0}, ())
    assert parts.due() == ["repair"]
    parts.gaps.on_timer()
    assert [(sender, list(wanted)) for sender, wanted in parts.requested] == [(B, [(1, 2)])]
    put(parts, 1, 2, 3)
    parts.flush.check()
    assert parts.membership.reached_count == 1
    assert parts.group.windows[B].handed == 2, "the third belongs to the next view"
    parts.flush.check()
    assert parts.membership.reached_count == 1


def test_messages_of_a_departed_sender_are_requested_from_their_holder() -> None:
    parts = Parts()
    parts.flush.aim(NEXT, {A: 0, C: 0}, (Ending(B, 2, C, 0),))
    assert parts.flush.aims[B] == 2
    assert parts.flush.request_target(B) == C


def test_when_the_sender_does_not_answer_the_others_are_asked_in_turn() -> None:
    parts = four_members()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0, D: 0}, ())
    asked = [parts.flush.request_target(B) for _ in range(UNANSWERED_REQUESTS_MAX + 4)]
    assert asked == [B] * UNANSWERED_REQUESTS_MAX + [C, D, B, C]
    assert B in parts.flush.holders, "from now on its messages count from any member"


def test_a_member_that_answered_is_asked_again() -> None:
    parts = four_members()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0, D: 0}, ())
    for _ in range(UNANSWERED_REQUESTS_MAX + 1):
        parts.flush.request_target(B)
    put(parts, 1)
    assert parts.flush.request_target(B) == C
    assert parts.flush.holders[B] == C


def test_another_member_replaces_a_suspected_one() -> None:
    parts = four_members()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0, D: 0}, ())
    parts.flush.on_suspect(B, suspected=True)
    assert parts.flush.holders[B] in (C, D)


def test_the_installed_view_ends_the_flush() -> None:
    parts = Parts()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0}, ())
    parts.flush.thaw()
    assert not parts.flush.is_frozen
    assert not parts.flush.is_aiming
    assert not parts.flush.aims


def test_what_a_hole_swallowed_is_not_reported_as_held() -> None:
    parts = Parts()
    window = parts.group.windows[B]
    window.expect(3)
    window.skip(2)
    put(parts, 3)
    (held,) = parts.flush.held([B])
    assert held.low == max(window.low, window.holed) > 0


def test_messages_past_the_window_are_reached_before_a_view() -> None:
    parts = Parts()
    beyond = SPEC.capacity + 5
    parts.group.windows[B].put(run(1, 50))
    parts.group.windows[B].deliver(50)
    parts.flush.aim(NEXT, {A: 0, B: beyond, C: 0}, ())
    parts.hand_up(B, parts.group.windows[B].put(run(51, beyond - 50)))
    assert parts.group.windows[B].handed == beyond
    assert parts.flush.reached()


def test_a_suspected_sender_whose_messages_are_all_here_needs_no_holder() -> None:
    parts = four_members()
    put(parts, 1, 2)
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 1, D: 0}, ())
    parts.flush.on_suspect(B, suspected=True)
    assert B not in parts.flush.holders


def test_progress_begins_the_count_of_requests_anew() -> None:
    parts = four_members()
    parts.flush.aim(NEXT, {A: 0, B: 9, C: 0, D: 0}, ())
    for seqno in range(1, 4):
        for _ in range(UNANSWERED_REQUESTS_MAX):
            assert parts.flush.request_target(B) == B
        put(parts, seqno)


def test_of_two_others_the_second_is_asked_before_the_sender_again() -> None:
    parts = Parts()
    parts.flush.aim(NEXT, {A: 0, B: 2, C: 0}, ())
    for _ in range(UNANSWERED_REQUESTS_MAX):
        assert parts.flush.request_target(B) == B
    assert [parts.flush.request_target(B) for _ in range(3)] == [C, B, C]
