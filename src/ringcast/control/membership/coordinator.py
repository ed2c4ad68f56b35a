"""The coordinator: the most senior member, which collects what has changed and makes the next view.

Requests that arrive close together become one view. A change that meets a new crash begins anew
with a higher number. The coordinator repeats a view until every member has confirmed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.control.membership.change import Change
from ringcast.control.membership.component import Component
from ringcast.control.membership.merging import Merging
from ringcast.control.membership.publication import Publication
from ringcast.control.membership.view_size import ViewSize, full
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.frames import (
    Evict,
    Flushed,
    Install,
    Installed,
    Join,
    Leave,
    Merge,
    MergeReady,
    Prepare,
    Refused,
)

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart

ACCUSE_AFTER = 3
"""How often a member is asked without an answer before it is accused."""
JOINS_MAX = 512
"""How many joiners one view admits at most; the others ask again."""
UNHEARD_MAX = 8
"""How often a merge leader is told without an answer that all have stopped before it counts as
dead."""
RETRY_PARTS = 5
"""A member that asks to join gets the view again after this part of `retry` at the earliest."""


class Coordinator(Component):
    """Makes views."""

    def __init__(self, part: MembershipPart) -> None:
        super().__init__(part)
        self.change: Change | None = None
        """The change under way."""
        self.has_left = False
        """Set once the view without this member is published."""
        self._joins: dict[Address, Peer] = {}
        self._leaves: set[Address] = set()
        self._repeats = 0
        self._publication = Publication(part)
        self._merging = Merging(part)

    def enter(self) -> None:
        """A view is installed; continue with the requests that have arrived since."""
        if self._is_needed:
            self._gather()

    def is_late(self, member: Address) -> bool:
        """Whether the member has not confirmed the view yet."""
        return self._publication.awaits(member)

    # What makes a new view necessary -------------------------------------------------------------

    def on_join(self, frame: Join, source: Address) -> None:
        """A joiner asks to be admitted; one that is in the view already gets it again."""
        if source in self.view:
            self.part.repeat_view(source, self.spec.retry / RETRY_PARTS)
        elif not self.part.admission.has_proved(frame.peer, frame.cookie):
            self.part.discovery.introduce(frame.peer, self.env.peer)
        elif source in self._joins or len(self._joins) < JOINS_MAX:
            self._joins[source] = frame.peer
            self._gather()

    def on_leave(self, frame: Leave, source: Address) -> None:
        """A member asks for a view without it."""
        if source in self.view:
            self.let_go(source)

    def let_go(self, member: Address) -> None:
        """Make a view without this leaver, which may be the coordinator itself."""
        self._leaves.add(member)
        self._gather()

    def on_evict(self, frame: Evict, source: Address) -> None:
        """A member asks for a view without another one."""
        if source in self.view and frame.member != self.env.me:
            self.evict(frame.member, frame.reason)
        else:
            self.part.participant.on_evict(frame, source)

    def evict(self, member: Address, reason: str) -> None:
        """Make a view without this member; a change that waits for it begins anew. The next member
        makes the view without the coordinator."""
        if member == self.env.me:
            absent = self.part.departures.absent
            maker = next((m for m in self.view if m not in absent and m != member), member)
            self.env.out.send(Evict(member, reason), maker)
        elif member in self.view:
            self.part.departures.evicted[member] = reason
            self.env.out.send(Evict(member, reason), member)
            if self.change is not None and member in self.change.silent:
                self._start()
            else:
                self._gather()

    def on_suspect(self) -> None:
        """The suspects have changed while no change is under way: step down, or make a view."""
        if self.part.participant.acting != self.env.me:
            self.part.step_down()
        elif self._gone:
            self._gather()

    def on_suspect_in_change(self) -> None:
        """The suspects have changed: a change that waits for an absent member begins anew."""
        assert self.change is not None
        if self.part.participant.acting == self.env.me and self._gone & self.change.awaited:
            self._start()

    def on_found(self, peer: Peer, view: ViewId, coordinator: Peer, cookie: int, echo: int) -> None:
        """Another group, perhaps: the coordinator with the lowest address leads a merge.

        A merge stops all members, so a coordinator counts once it has brought back a cookie."""
        self.part.participant.on_found(peer, view, coordinator, cookie, echo)
        if view == NO_VIEW or peer.address in self.view or coordinator.address in self.view:
            return
        if peer.address != coordinator.address:
            self.env.out.learn(coordinator)
            self.part.discovery.introduce(coordinator, self.env.peer)
            return
        if not self.part.admission.has_proved(peer, echo):
            if not echo and not self._merging.knows_leader(min(self.env.me, peer.address)):
                self.part.discovery.introduce(peer, self.env.peer, cookie)
            return
        self._merging.found(coordinator, view)
        if coordinator.address < self.env.me:
            # The coordinator that has to lead may not know of this group.
            self.part.discovery.introduce(coordinator, self.env.peer, cookie)
            self.part.discovery.put_off()
        elif self.change is None and self._merging.leads:
            self._gather()

    def _gather(self) -> None:
        if self.has_left or self.change is not None:
            return
        if not self.env.timers.is_set(self.part, "gather"):
            self.env.timers.set(self.part, "gather", self.env.now + self.spec.gather)

    def on_gather_timer(self) -> None:
        """Requests have had time to arrive: begin a change, if one is still needed."""
        self._turn_away()
        if self._is_needed:
            self._start()

    def on_gather_timer_early(self) -> None:
        """This member still lacks what comes before the last view: one view after the other."""
        pending = self.part.participant.pending
        assert pending is not None
        if not self._is_lost(*pending):
            self.env.timers.set(self.part, "gather", self.env.now + self.spec.retry)
        else:
            self.on_gather_timer()

    def _is_lost(self, frame: Install, source: Address) -> bool:
        """Whether a member of the view that waits is gone, perhaps with the only copy of what is
        lacking. A source that has the view already can give it."""
        has_it = source in self.view and source not in {self.env.me, *self._gone}
        return not has_it and any(member in frame.view for member in self._gone)

    @property
    def _gone(self) -> set[Address]:
        return {m for m in self.part.departures.absent if m in self.view}

    @property
    def _is_needed(self) -> bool:
        self._joins = {a: peer for a, peer in self._joins.items() if a not in self.view}
        self._leaves = {member for member in self._leaves if member in self.view}
        merges = self._merging.leads
        return bool(self._gone or self._joins or self._leaves or merges)

    def _turn_away(self) -> None:
        """Refuse the joiners for which the view has no room, and say so to them."""
        size = ViewSize(self.view.peers)
        for joiner, peer in list(self._joins.items()):
            if joiner not in self.view and not size.takes((peer,)):
                del self._joins[joiner]
                self.env.counters["refused_full"] += 1
                self.env.out.send(Evict(joiner, full()), joiner)

    # Making it -----------------------------------------------------------------------------------

    def _start(self, merge: Merge | None = None) -> None:
        """Ask all that go on to stop; with `merge`, for the view of another coordinator."""
        if self.change is not None and self.change.leader is not None:
            self._merging.pause.failed()  # The members here were stopped for nothing.
        self._turn_away()
        gone = self._gone
        change = Change(
            self._proposal() if merge is None else merge.proposal,
            self.view,
            [member for member in self.view if member in gone],
            self._leavers(gone),
            self._joins.values() if merge is None else (),
            None if merge is None else merge.proposal.coordinator,
        )
        if merge is None:
            gone = {*change.departed, *change.leavers}
            size = ViewSize((*change.survivors, *change.joiners), endings=len(gone))
            self._merging.begin(change.proposal, size)
        if self.part.participant.pending is not None:
            self._publication.withdraw()
        self.change = change
        self.env.timers.cancel(self.part, "gather")
        frame = Prepare(change.proposal, self.view.id, change.departed, 0)
        if len(change.awaited) > 1:
            self.env.out.send(frame)
        self.part.participant.promise(frame)
        self._retry_later(0)
        self.on_flushed(self.part.participant.answer(frame), self.env.me)

    def _proposal(self) -> ViewId:
        """The next proposal of this member, above all that it has heard of."""
        number = max(self.part.number_above, self._merging.number + 1)
        return ViewId(number, self.env.me)

    def _leavers(self, gone: set[Address]) -> list[Address]:
        leavers = [member for member in self.view if member in self._leaves and member not in gone]
        if len(leavers) + len(gone) == len(self.view) > 1 and not self._joins:
            leavers.remove(self.env.me)  # When all leave, the coordinator goes last.
        return leavers

    def on_promise(self, proposal: ViewId) -> None:
        """This member has answered a proposal: its own is over if that was a later one."""
        if self.change is not None and proposal > self.change.proposal:
            self.give_up()

    def give_up(self) -> None:
        """Stop making the view: this member follows another one."""
        self.change = None
        self._merging.give_up()

    def on_flushed(self, frame: Flushed, source: Address) -> None:
        """A member has stopped."""
        change = self.change
        if change is not None and frame.proposal == change.proposal:
            change.answer(source, frame)
            self._complete_if_ready()

    def on_refused(self, frame: Refused, source: Address) -> None:
        """A merge that the other cannot make now, or a proposal that arrived after a higher one."""
        if self._merging.on_answer(frame, source):
            self.part.discovery.soon(self.spec.retry_max)
            self._complete_if_ready()
        elif self.change is None or frame.proposal != self.change.proposal:
            self.part.participant.on_refused(frame, source)
        elif source == self.change.leader:
            self._start()  # The merge that the members here were stopped for is not made.
        elif source not in self.view:
            self.env.counters["dropped_not_member"] += 1
        elif frame.view != self.view.id:
            self.part.note_elsewhere((source,))
        else:
            self.part.seen = max(self.part.seen, frame.promised.number)
            self._start()

    def _complete_if_ready(self) -> None:
        change = self.change
        if change is None or change.silent:
            return
        if change.leader is not None:
            self.env.out.send(change.merge_ready(), change.leader)
        elif self._merging.ready:
            self._complete(change)

    def _complete(self, change: Change) -> None:
        """All have stopped: this is the view."""
        frame = change.install(self._merging.answers)
        self.change = None
        self._merging.end()
        if frame is None:
            self.part.control.finish("left")
            return
        for member in frame.view:
            self._joins.pop(member, None)
        self._publication.send(frame, change.leavers)
        self._retry_later(0)
        if self.env.me in frame.view:
            self.part.participant.wait_for(frame, self.env.me)
        else:
            self.has_left = True

    # Repeating -----------------------------------------------------------------------------------

    def on_installed(self, frame: Installed, source: Address) -> None:
        """A member confirms the view, or has another one."""
        if not self._publication.confirm(source, frame.view):
            self.part.participant.on_installed(frame, source)
        elif self.has_left and self._publication.is_confirmed:
            self.part.control.finish("left")

    def _retry_later(self, repeats: int) -> None:
        self._repeats = repeats
        pause = min(self.spec.retry * 2.0**repeats, self.spec.retry_max)
        self.env.timers.set(self.part, "retry", self.env.now + pause)

    def on_retry_timer(self) -> None:
        """Repeat what was not answered."""
        change = self.change
        if change is None and self._publication.is_confirmed:
            return
        self._retry_later(self._repeats + 1)
        self._publication.repeat()
        if change is not None:
            self._repeat_change(change)

    def _repeat_change(self, change: Change) -> None:
        change.attempts += 1
        is_over = change.attempts * self.spec.retry_max > self.spec.change_timeout
        if is_over or (change.leader is not None and change.unheard >= UNHEARD_MAX):
            self._merging.end()
            self._start()
            return
        frame = Prepare(change.proposal, change.view.id, change.departed, 1)
        for member in change.silent:
            self.env.out.send(frame, member)
            if change.attempts > ACCUSE_AFTER:
                self.part.failure.accuse(member)
        change.unheard += not change.silent
        self._merging.repeat()
        self._complete_if_ready()

    # Merging -------------------------------------------------------------------------------------

    def on_merge(self, frame: Merge, source: Address) -> None:
        """Another coordinator leads a merge: stop the members here for it, if nothing else is under
        way but an earlier attempt of the same leader, which it has given up."""
        change = self.change
        if change is not None and change.proposal == frame.proposal:
            change.unheard = 0
            return
        fits = frame.base == self.view.id and frame.proposal > self.part.promised
        is_free = self.part.participant.pending is None
        is_free = is_free and (change is None or change.leader == source)
        is_free = is_free and not self.part.discovery.resting and self._merging.pause.is_over
        if is_free and fits and source == frame.proposal.coordinator:
            self._start(frame)
        else:
            self.part.participant.refuse(frame.proposal, source)

    def on_merge_ready(self, frame: MergeReady, source: Address) -> None:
        """Another group has stopped for the merge that this coordinator leads, or for another."""
        if self._merging.on_answer(frame, source):
            self._complete_if_ready()
        else:
            self.part.participant.on_merge_ready(frame, source)
