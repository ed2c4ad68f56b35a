"""The membership's transitions as one table: what each state does on each event.

The part looks every frame, timer and call up in this table (`MembershipPart.handle`). The unit
tests have a case for each row, and the table and diagram in docs/membership.md are generated from
it. An event without a row is ignored in that state.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """What a member does at the moment, as far as views are concerned."""

    SEARCHING = "searching", "without a view; no group is known"
    JOINING = "joining", "without a view; has asked a coordinator to be admitted"
    FOLLOWING = "following", "in a view that another member coordinates; no change is under way"
    STOPPED = "stopped", "has answered a proposal; sends nothing until a view is installed"
    INSTALLING = "installing", "has the next view; gets the messages that come before it"
    COORDINATING = "coordinating", "coordinates the view; no change is under way"
    PREPARING = "preparing", "coordinator: has proposed a view and counts the answers"
    MERGING = "merging", "coordinator: stops its members for a merge that another one leads"
    YIELDED = "yielded", "coordinator: has answered the higher proposal of another member"
    COMPLETING = "completing", "coordinator: has the next view; gets what comes before it"
    DEPARTED = "departed", "coordinator: has published a view without itself and repeats it"

    def __new__(cls, value: str, meaning: str) -> State:
        """A state with its meaning, for the docs."""
        state = object.__new__(cls)
        state._value_ = value
        state.meaning = meaning
        return state

    meaning: str


_S = State
JOINERS = (_S.SEARCHING, _S.JOINING)
FOLLOWERS = (_S.FOLLOWING, _S.STOPPED, _S.INSTALLING)
FREE = (_S.COORDINATING, _S.YIELDED, _S.COMPLETING, _S.DEPARTED)
CHANGING = (_S.PREPARING, _S.MERGING)
COORDINATORS = FREE + CHANGING
MEMBERS = FOLLOWERS + COORDINATORS

TAKEN_OVER = (_S.COORDINATING, _S.YIELDED)
"""Where a follower is after it has become coordinator."""
PUBLISHED = (_S.COMPLETING, _S.COORDINATING, _S.DEPARTED)
"""Where a coordinator is after it has made a view; it may have all that comes before it."""

FRAMES = (
    *("PREPARE", "FLUSHED", "VIEW", "INSTALLED", "REFUSED", "JOIN", "LEAVE", "EVICT"),
    *("MERGE", "MERGE_READY"),
)
TIMERS = ("join", "decide", "gather", "retry", "stuck", "leave")
CALLS = ("found", "suspect", "reached", "leave()", "evict()")
"""What other parts and the application tell the membership."""


class Row(NamedTuple):
    """One rule: in these states, this event leads to this action."""

    states: tuple[State, ...]
    event: str
    """The kind of a frame, "NAME timer", or one of CALLS."""
    action: str
    """The component and its method, as attributes of the part."""
    text: str
    leads_to: tuple[State, ...] = ()
    """The states that the action may end in, besides the one it began in."""


ROWS = (
    # A member without a view.
    Row(
        JOINERS,
        "found",
        "joiner.on_found",
        "note a rival, or ask a group's coordinator (JOIN)",
        (_S.JOINING,),
    ),
    Row(JOINERS, "PREPARE", "joiner.on_prepare", "if asked directly: say that it has no view"),
    Row(
        JOINERS,
        "VIEW",
        "joiner.on_view",
        "install the view if it admits this member",
        (_S.FOLLOWING,),
    ),
    Row(
        (_S.JOINING,),
        "join timer",
        "joiner.on_join_timer",
        "ask again, then search anew",
        (_S.SEARCHING,),
    ),
    Row(
        (_S.SEARCHING,),
        "decide timer",
        "joiner.on_decide_timer",
        "let a rival go first, create a group, wait or fail",
        (_S.COORDINATING,),
    ),
    Row((_S.JOINING,), "EVICT", "joiner.on_evict", "close if the coordinator refuses this member"),
    Row(JOINERS, "leave()", "joiner.leave", "close: there is nothing to leave"),
    # A view change, as every member follows it.
    Row(
        FOLLOWERS,
        "PREPARE",
        "participant.on_prepare",
        "stop and answer (FLUSHED); refuse a lower proposal; help a member of an older view",
        (_S.STOPPED,),
    ),
    Row(
        COORDINATORS,
        "PREPARE",
        "participant.on_prepare",
        "stop and answer (FLUSHED); refuse a lower proposal; help a member of an older view",
        (_S.YIELDED,),
    ),
    Row(
        FOLLOWERS,
        "VIEW",
        "participant.on_view",
        "get what comes before the view, then install it; a view without this member means"
        " that the others went on",
        (_S.INSTALLING, _S.FOLLOWING, *TAKEN_OVER),
    ),
    Row(
        COORDINATORS,
        "VIEW",
        "participant.on_view",
        "get what comes before the view, then install it; a view without this member means"
        " that the others went on",
        (_S.COMPLETING, _S.COORDINATING, _S.FOLLOWING, _S.PREPARING),
    ),
    Row(
        (_S.INSTALLING, _S.COMPLETING),
        "reached",
        "participant.on_reached",
        "install the view and confirm it (INSTALLED)",
        (_S.FOLLOWING, _S.COORDINATING),
    ),
    Row(
        FOLLOWERS + FREE,
        "stuck timer",
        "participant.on_stuck_timer",
        "accept any view that follows this one; the second time go on alone",
        (_S.COORDINATING,),
    ),
    # What a participant answers.
    Row(
        FOLLOWERS,
        "INSTALLED",
        "participant.on_installed",
        "repeat the view to a member of an older one; note a member that is elsewhere",
        TAKEN_OVER,
    ),
    Row(
        FOLLOWERS,
        "REFUSED",
        "participant.on_refused",
        "note a member that is elsewhere",
        TAKEN_OVER,
    ),
    Row(FOLLOWERS, "JOIN", "participant.on_join", "name the coordinator (PRESENT)"),
    Row(FOLLOWERS, "MERGE", "participant.on_merge", "refuse: only a coordinator merges"),
    Row(
        FOLLOWERS,
        "MERGE_READY",
        "participant.on_merge_ready",
        "repeat the view of a merge that is made; refuse one that was given up",
    ),
    Row(
        FOLLOWERS,
        "EVICT",
        "participant.on_evict",
        "note why this member is evicted, or evict the coordinator",
        TAKEN_OVER,
    ),
    Row(
        FOLLOWERS,
        "found",
        "participant.on_found",
        "ask a member of this view that is in a later one (INSTALLED); repeat the view to the next"
        " coordinator, if it searches still (VIEW)",
    ),
    Row(
        FOLLOWERS,
        "suspect",
        "participant.on_suspect",
        "become coordinator when all members before this one are absent",
        TAKEN_OVER,
    ),
    Row(
        FOLLOWERS,
        "evict()",
        "participant.evict",
        "ask the coordinator (EVICT), or become it",
        TAKEN_OVER,
    ),
    # What a coordinator collects.
    Row(
        COORDINATORS,
        "JOIN",
        "coordinator.on_join",
        "admit a joiner with a cookie with the next view, send one to another (PRESENT), or repeat"
        " the view",
    ),
    Row(COORDINATORS, "LEAVE", "coordinator.on_leave", "make a view without the leaver"),
    Row(
        COORDINATORS,
        "EVICT",
        "coordinator.on_evict",
        "make a view without the member; a change that waits for it begins anew",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "evict()",
        "coordinator.evict",
        "make a view without the member; a change that waits for it begins anew",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "found",
        "coordinator.on_found",
        "exchange cookies with another group's coordinator (PRESENT), then lead a merge with one"
        " that has a higher address",
    ),
    Row(
        FREE,
        "suspect",
        "coordinator.on_suspect",
        "make a view without the absent; step down when a more senior member is heard again",
        (_S.FOLLOWING, _S.STOPPED),
    ),
    # A view change, as its coordinator makes it.
    Row(
        (_S.COORDINATING, _S.YIELDED, _S.DEPARTED),
        "gather timer",
        "coordinator.on_gather_timer",
        "propose a view (PREPARE), if one is needed",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        (_S.COMPLETING,),
        "gather timer",
        "coordinator.on_gather_timer_early",
        "wait for the pending view; propose anew if one of its members is gone",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        CHANGING,
        "FLUSHED",
        "coordinator.on_flushed",
        "count; after the last answer publish the view (VIEW), or tell the merge leader"
        " (MERGE_READY)",
        PUBLISHED,
    ),
    Row(
        CHANGING,
        "suspect",
        "coordinator.on_suspect_in_change",
        "propose anew when a member that has to answer is absent",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "REFUSED",
        "coordinator.on_refused",
        "propose anew with a higher number, or leave the group out of the merge",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "INSTALLED",
        "coordinator.on_installed",
        "note that the member has confirmed the view; help a member of an older one",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "retry timer",
        "coordinator.on_retry_timer",
        "repeat what was not answered; after `change_timeout` propose anew",
        (_S.PREPARING, *PUBLISHED),
    ),
    Row(
        COORDINATORS,
        "MERGE",
        "coordinator.on_merge",
        "stop the members for the merge, or refuse while another change is under way",
        (_S.MERGING,),
    ),
    Row(
        COORDINATORS,
        "MERGE_READY",
        "coordinator.on_merge_ready",
        "count; after the last answer publish the common view",
        PUBLISHED,
    ),
    # Leaving, in any role.
    Row(MEMBERS, "leave()", "leaver.leave", "wait until all have this member's messages"),
    Row(MEMBERS, "leave timer", "leaver.on_leave_timer", "ask for a view without it, or close"),
)

TRANSITIONS = {(state, row.event): row for row in ROWS for state in row.states}
"""The row of each state and event."""

assert len(TRANSITIONS) == sum(len(row.states) for row in ROWS), "two rows for one state and event"
