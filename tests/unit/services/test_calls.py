"""Calls under way: every slot is settled once, and a call is done once."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part
from ringcast.errors import LocalError
from ringcast.services.calls import Calls, answers_wanted
from ringcast.services.replies import GONE, NO_HANDLER, Outcome, Reply

MEMBERS = [Address(number) for number in range(1, 6)]
VALUE = Reply(Outcome.VALUE, b"yes")


def new_calls() -> tuple[Calls, Env]:
    env = Env(Peer(Address(1), "a", ""), Random(1))
    return Calls(env, Part(env)), env


@given(
    st.lists(st.tuples(st.sampled_from(MEMBERS), st.sampled_from([VALUE, NO_HANDLER, GONE]))),
    st.sampled_from(["all", "first", 2, 4]),
)
def test_a_call_is_done_when_there_is_no_more_to_wait_for(
    replies: list[tuple[Address, Reply]], wait: str | int
) -> None:
    calls, _ = new_calls()
    call = calls.open(MEMBERS, wait, None)
    settled: dict[Address, Reply] = {}
    wanted = answers_wanted(wait)
    for member, reply in replies:
        answers = sum(reply.ok for reply in settled.values())
        is_done = len(settled) == len(MEMBERS) or (wanted is not None and answers >= wanted)
        assert call.done == is_done == (not len(calls))
        if not is_done:
            settled.setdefault(member, reply)
        if reply is GONE:
            calls.gone([member])
        else:
            calls.answered(member, call.id, reply)
    assert dict(call.replies) == settled
    assert calls.finished == ([call] if call.done else [])


def test_a_call_to_all_waits_for_the_members_that_it_is_sent_to() -> None:
    calls, env = new_calls()
    call = calls.open(None, "all", 5.0)
    calls.gone(MEMBERS[:1])
    calls.answered(MEMBERS[0], call.id, VALUE)
    assert env.counters["late_answers"] == 1
    calls.sent(call.id, MEMBERS[1:3])
    calls.answered(MEMBERS[1], call.id, VALUE)
    calls.answered(MEMBERS[0], call.id, VALUE)
    assert calls.finished == []
    calls.answered(MEMBERS[2], call.id, VALUE)
    assert calls.finished == [call]
    assert list(call.replies) == MEMBERS[1:3]
    assert env.timers.deadline == float("inf")


def test_a_call_has_no_answer_before_a_member_is_asked() -> None:
    calls, _ = new_calls()
    assert calls.open([], "all", None).done


def test_time_ends_a_call() -> None:
    calls, env = new_calls()
    call = calls.open(MEMBERS[:2], "all", 5.0)
    calls.answered(MEMBERS[0], call.id, VALUE)
    due = env.timers.pop_due(5.0)
    assert due is not None
    calls.expire(due[1])
    assert call.done
    assert [reply.outcome for reply in call.replies.values()] == [Outcome.VALUE, Outcome.TIMED_OUT]
    assert call.replies.answers == {MEMBERS[0]: b"yes"}
    assert not call.replies.ok


def test_what_to_wait_for_is_checked() -> None:
    for wrong in ("none", 0, 1.5):
        with pytest.raises(LocalError):
            answers_wanted(wrong)  # type: ignore[arg-type]
