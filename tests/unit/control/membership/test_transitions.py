"""The table of transitions: a case for each row and state, and the docs made from it."""

import pytest

from ringcast.control.membership.part import MembershipPart
from ringcast.control.membership.transitions import (
    CALLS,
    FRAMES,
    ROWS,
    TIMERS,
    TRANSITIONS,
    Row,
    State,
)
from tests.unit.control.membership.bench import MEMBERS_IN
from tests.unit.control.membership.cases import feed, outcome
from tools.membership_docs import PAGE, updated

OUTCOMES = """
searching    found         JOIN to 1; joining
joining      found         JOIN to 1; =
searching    PREPARE       INSTALLED to 3; =
joining      PREPARE       INSTALLED to 3; =
searching    VIEW          =
joining      VIEW          INSTALLED to 3; following
joining      join timer    JOIN to 3; =
searching    decide timer  =
joining      EVICT         =
searching    leave()       left before it had joined; =
joining      leave()       left before it had joined; =
following    PREPARE       FLUSHED to 3; stopped
stopped      PREPARE       FLUSHED to 3; =
installing   PREPARE       FLUSHED to 3; stopped
coordinating PREPARE       FLUSHED to 3; yielded
yielded      PREPARE       FLUSHED to 3; =
completing   PREPARE       FLUSHED to 3; yielded
departed     PREPARE       FLUSHED to 3; =
preparing    PREPARE       FLUSHED to 3; yielded
merging      PREPARE       FLUSHED to 3; yielded
following    VIEW          installing
stopped      VIEW          installing
installing   VIEW          =
coordinating VIEW          completing
yielded      VIEW          completing
completing   VIEW          =
departed     VIEW          completing
preparing    VIEW          completing
merging      VIEW          completing
installing   reached       INSTALLED to 3; following
completing   reached       coordinating
following    stuck timer   coordinating
stopped      stuck timer   =
installing   stuck timer   coordinating
coordinating stuck timer   =
yielded      stuck timer   =
completing   stuck timer   coordinating
departed     stuck timer   =
following    INSTALLED     REFUSED to 9; =
stopped      INSTALLED     REFUSED to 9; =
installing   INSTALLED     REFUSED to 9; =
following    REFUSED       =
stopped      REFUSED       =
installing   REFUSED       =
following    JOIN          PRESENT to 9; =
stopped      JOIN          PRESENT to 9; =
installing   JOIN          PRESENT to 9; =
following    MERGE         REFUSED to 1; =
stopped      MERGE         REFUSED to 1; =
installing   MERGE         REFUSED to 1; =
following    MERGE_READY   REFUSED to 1; =
stopped      MERGE_READY   REFUSED to 1; =
installing   MERGE_READY   REFUSED to 1; =
following    EVICT         EVICT to 3; gather; coordinating
stopped      EVICT         EVICT to 3; gather; yielded
installing   EVICT         EVICT to 3; gather; yielded
following    found         =
stopped      found         =
installing   found         =
following    suspect       gather; coordinating
stopped      suspect       gather; yielded
installing   suspect       gather; yielded
following    evict()       EVICT to 3; gather; coordinating
stopped      evict()       EVICT to 3; gather; yielded
installing   evict()       EVICT to 3; gather; yielded
coordinating JOIN          gather; =
yielded      JOIN          gather; =
completing   JOIN          gather; =
departed     JOIN          =
preparing    JOIN          =
merging      JOIN          =
coordinating LEAVE         gather; =
yielded      LEAVE         gather; =
completing   LEAVE         gather; =
departed     LEAVE         =
preparing    LEAVE         =
merging      LEAVE         =
coordinating EVICT         EVICT to 3; gather; =
yielded      EVICT         EVICT to 3; gather; =
completing   EVICT         EVICT to 3; gather; =
departed     EVICT         EVICT to 3; =
preparing    EVICT         EVICT to 3, EVICT to 7, EVICT to 3; completing
merging      EVICT         EVICT to 3, PREPARE to all; preparing
coordinating evict()       EVICT to 3; gather; =
yielded      evict()       EVICT to 3; gather; =
completing   evict()       EVICT to 3; gather; =
departed     evict()       EVICT to 3; =
preparing    evict()       EVICT to 3, EVICT to 7, EVICT to 3; completing
merging      evict()       EVICT to 3, PREPARE to all; preparing
coordinating found         PRESENT to 1; =
yielded      found         PRESENT to 1; =
completing   found         PRESENT to 1; =
departed     found         PRESENT to 1; =
preparing    found         PRESENT to 1; =
merging      found         PRESENT to 1; =
coordinating suspect       gather; =
yielded      suspect       gather; =
completing   suspect       gather; =
departed     suspect       =
coordinating gather timer  PREPARE to all; preparing
yielded      gather timer  PREPARE to all; preparing
departed     gather timer  PREPARE to all; preparing
completing   gather timer  gather; =
preparing    FLUSHED       EVICT to 7, VIEW to all; completing
merging      FLUSHED       =
preparing    suspect       EVICT to 7; completing
merging      suspect       PREPARE to all; preparing
coordinating REFUSED       =
yielded      REFUSED       =
completing   REFUSED       =
departed     REFUSED       =
preparing    REFUSED       PREPARE to all; =
merging      REFUSED       PREPARE to all; preparing
coordinating INSTALLED     REFUSED to 9; =
yielded      INSTALLED     REFUSED to 9; =
completing   INSTALLED     REFUSED to 9; =
departed     INSTALLED     REFUSED to 9; =
preparing    INSTALLED     REFUSED to 9; =
merging      INSTALLED     REFUSED to 9; =
coordinating retry timer   =
yielded      retry timer   =
completing   retry timer   VIEW to 3; =
departed     retry timer   VIEW to 3, VIEW to 7; =
preparing    retry timer   PREPARE to 3; =
merging      retry timer   PREPARE to 3, PREPARE to 7; =
coordinating MERGE         PREPARE to all; merging
yielded      MERGE         PREPARE to all; merging
completing   MERGE         REFUSED to 1; =
departed     MERGE         PREPARE to all; merging
preparing    MERGE         REFUSED to 1; =
merging      MERGE         PREPARE to all; =
coordinating MERGE_READY   REFUSED to 1; =
yielded      MERGE_READY   REFUSED to 1; =
completing   MERGE_READY   REFUSED to 1; =
departed     MERGE_READY   REFUSED to 1; =
preparing    MERGE_READY   REFUSED to 1; =
merging      MERGE_READY   REFUSED to 1; =
following    leave()       LEAVE to 3; =
stopped      leave()       LEAVE to 3; =
installing   leave()       LEAVE to 3; =
coordinating leave()       gather; =
yielded      leave()       gather; =
completing   leave()       gather; =
departed     leave()       =
preparing    leave()       =
merging      leave()       =
following    leave timer   LEAVE to 3; =
stopped      leave timer   LEAVE to 3; =
installing   leave timer   LEAVE to 3; =
coordinating leave timer   gather; =
yielded      leave timer   gather; =
completing   leave timer   gather; =
departed     leave timer   =
preparing    leave timer   =
merging      leave timer   =
"""
"""State, event, and what follows: the frames sent, whether the next change is being gathered, and
the state afterwards (`=`: the same)."""

STATES = {state.value: state for state in State}

EXPECTED = {
    (STATES[line[:13].strip()], line[13:27].strip()): line[27:]
    for line in OUTCOMES.strip().splitlines()
}


@pytest.mark.parametrize("state", State)
def test_a_member_can_be_brought_into_each_state(state: State) -> None:
    assert MEMBERS_IN[state]().part.state is state


@pytest.mark.parametrize(
    ("state", "row"),
    [pytest.param(s, row, id=f"{s.value}-{row.event}") for row in ROWS for s in row.states],
)
def test_a_row_of_the_table(state: State, row: Row) -> None:
    bench = MEMBERS_IN[state]()
    feed(bench, row.event)
    assert outcome(bench, state) == EXPECTED[state, row.event]
    assert bench.part.state in (state, *row.leads_to)


@pytest.mark.parametrize("state", State)
def test_events_without_a_row_change_nothing(state: State) -> None:
    events = [*FRAMES, *CALLS, *(f"{name} timer" for name in TIMERS)]
    for event in events:
        if (state, event) not in TRANSITIONS and event != "leave timer":
            bench = MEMBERS_IN[state]()
            is_gathering = bench.env.timers.is_set(bench.part, "gather")
            feed(bench, event)
            assert bench.kinds() == [], event
            assert bench.part.state is state, event
            if event != "gather timer":
                assert bench.env.timers.is_set(bench.part, "gather") == is_gathering, event


def test_every_row_is_about_an_event_that_exists() -> None:
    events = {*FRAMES, *CALLS, *(f"{name} timer" for name in TIMERS)}
    assert {row.event for row in ROWS} == events
    assert {kind.kind for kind in MembershipPart.kinds} == set(FRAMES)


def test_the_docs_are_up_to_date() -> None:
    text = PAGE.read_text()
    assert updated(text) == text, "run: python -m tools.membership_docs"
