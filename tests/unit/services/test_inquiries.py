"""Inquiries: only members are answered, questions are bounded, and old answers are ignored."""

import random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import StatsReply, StatsRequest
from ringcast.services.inquiries import ASK_SECONDS, QUESTIONS_MAX, REPORT_MAX, Inquiries

ME, ANN, STRANGER = Address(1), Address(2), Address(9)
VIEW = View(ViewId(1, ME), (Peer(ME, "me", "a:1"), Peer(ANN, "ann", "b:1")))


def made() -> tuple[Inquiries, Env]:
    env = Env(Peer(ME, "me", "a:1"), random.Random(1), 0.0, 1_400, None)
    return Inquiries(env), env


def test_a_member_is_answered() -> None:
    inquiries, env = made()
    inquiries.on_frame(StatsRequest(7), ANN, VIEW)
    inquiries.answer(b"fine")
    assert env.out.frames == [(ANN, StatsReply(7, b"fine"))]
    assert not inquiries.asked


def test_a_stranger_is_not() -> None:
    inquiries, env = made()
    inquiries.on_frame(StatsRequest(7), STRANGER, VIEW)
    inquiries.on_frame(StatsRequest(7), ANN, None)
    inquiries.on_frame(StatsReply(1, b"lies"), STRANGER, VIEW)
    assert not inquiries.asked
    assert not inquiries.reports
    assert env.counters["dropped_not_member"] == 3


def test_many_questions_of_a_member_get_one_answer_and_the_next_one_a_moment_later() -> None:
    inquiries, env = made()
    for number in range(1, 65):
        inquiries.on_frame(StatsRequest(number), ANN, VIEW)
    assert inquiries.asked == {ANN: 64}
    inquiries.answer(b"fine")
    inquiries.on_frame(StatsRequest(65), ANN, VIEW)
    assert not inquiries.asked
    env.now += ASK_SECONDS
    inquiries.on_frame(StatsRequest(66), ANN, VIEW)
    assert inquiries.asked == {ANN: 66}
    inquiries.gone((ANN,))
    assert not inquiries.asked


def test_an_answer_is_kept_with_its_round_trip_until_its_member_is_gone() -> None:
    inquiries, env = made()
    env.now = 10.0
    inquiries.ask(VIEW.members)
    assert env.out.frames == [(ANN, StatsRequest(1))]
    env.now = 10.5
    inquiries.on_frame(StatsReply(1, b"fine"), ANN, VIEW)
    assert inquiries.reports[ANN] == (b"fine", 10.5, 0.5)
    inquiries.gone((ANN,))
    assert not inquiries.reports


def test_an_answer_to_no_question_or_an_old_one_is_ignored() -> None:
    inquiries, _ = made()
    inquiries.on_frame(StatsReply(1, b"early"), ANN, VIEW)
    for _ in range(QUESTIONS_MAX + 1):
        inquiries.ask(VIEW.members)
    inquiries.on_frame(StatsReply(1, b"late"), ANN, VIEW)
    assert not inquiries.reports


def test_a_report_that_fits_no_frame_is_counted() -> None:
    inquiries, env = made()
    inquiries.on_frame(StatsRequest(1), ANN, VIEW)
    inquiries.answer(b"x" * (REPORT_MAX + 1))
    assert not env.out.frames
    assert env.counters["dropped_oversized"] == 1
