"""Stability: the members find out together what all members have delivered, and free it.

A round: each member votes how far it is, per sender, to the coordinator. Once all have voted, the
coordinator multicasts the minimum of what they delivered and the maximum of what they know of. The
table purges up to the one, and asks for what it lacks up to the other.

- A member votes by time, at random around `interval`, and by amount, when its application has taken
  a lot that is not stable. When nothing is unstable it does not wake at all.
- A vote leaves out the senders of which nothing is new. That is: all that is known of the sender
  was in a result of this view. A member that leaves a sender out has delivered exactly what
  is stable of it, so for the minimum the coordinator puts its last result in the place.
- A vote or a result that is lost costs a round: members vote again by time until a result covers
  what they have. A member that has missed the last result, when the others have nothing more to
  vote on, gets it again as the answer to its vote.
- All of this belongs to one view. In the next one all members begin at nothing and votes on
  everything once, so that no result rests on what a departed coordinator has said to some only.
  The first result then says that all members have installed the view.

- Any member can start a round by hand (`begin_round`): a result without marks asks all members to
  vote at once.

A silent member holds everything up, by intention: what it lacks has to be kept for it. A view
without it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Part, Spec
from ringcast.core.stack.ports import Ports, Rounds, StableMarks, Table
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import Frame, SenderMarks, Stable, Vote
from ringcast.errors import ConfigError

EARLY_VOTE_SHARE = 0.1
"""The part of an interval after which a member votes when it should not wait for a whole one."""


@protocol(
    role="stability",
    under="wire",
    offers=(Rounds, StableMarks),
    needs={Table: "a table to purge"},
)
@dataclass(frozen=True, kw_only=True)
class Stability(Spec):
    """How often members agree on the messages that all of them have."""

    interval: float = 0.5
    """Seconds between the votes of a member, on average, while anything is not stable. Shorter
    frees memory sooner after a burst and costs a small frame a member and interval."""
    max_bytes: int = 4_000_000
    """Bytes not known to be stable that a member's application has taken when the member votes
    without waiting for the interval; a quarter of the table at the most. Less keeps the tables
    small under load, and costs more rounds."""

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ConfigError(f"Stability.interval is {self.interval}: give seconds above 0")
        if self.max_bytes < 1:
            raise ConfigError(f"Stability.max_bytes is {self.max_bytes}: give at least 1")

    def build(self, env: Env) -> StabilityPart:
        """The part with these settings."""
        return StabilityPart(env, self)


@dataclass(frozen=True, kw_only=True)
class StabilitySnapshot(PartSnapshot):
    """What is stable: delivered by all members of the view."""

    stable: Mapping[Address, int]
    """By sender: its messages up to here are stable."""
    waits_for: tuple[Address, ...]
    """The members whose vote the round waits for, where this member counts the votes."""
    unstable: int
    """Messages that the application has taken and that are not stable."""


class StabilityPart(Part):
    """Votes, and as coordinator counts (ports.Rounds)."""

    kinds = (Vote, Stable)

    def __init__(self, env: Env, spec: Stability) -> None:
        super().__init__(env)
        self.spec = spec
        self.stable: dict[Address, int] = {}
        """Per sender the highest result that this member has seen in this view; 0 if none."""
        self.rounds_done = 0
        self._table: Table
        self._view: View | None = None
        self._votes: dict[Address, dict[Address, SenderMarks]] = {}
        self._voted = False
        """Whether this member has voted since the last result."""
        self._tries = 0
        """Votes since a result has brought something."""
        self._is_new = False
        """Whether there was no result in this view yet."""
        self._progressed = False
        """Whether the last result has brought something."""
        self._messages = 0
        """Messages that the application has taken and that are not stable."""
        self._unstable = 0.0
        """How much they are; from 1 on, a vote should not wait for the interval."""
        self._since_vote = 0.0
        """How much the application has taken since this member's last vote."""
        self._messages_max = self._nbytes_max = 1

    def connect(self, ports: Ports) -> None:
        self._table = ports[Table]
        messages, nbytes = self._table.bounds
        self._messages_max = max(1, messages // 4)
        self._nbytes_max = max(1, min(self.spec.max_bytes, nbytes // 4))
        self._table.watch(self)

    # When to vote --------------------------------------------------------------------------------

    def taken(self, messages: int, nbytes: int) -> None:
        share = max(messages / self._messages_max, nbytes / self._nbytes_max)
        self._messages += messages
        self._unstable += share
        self._since_vote += share
        if self._is_time:
            self._vote()
        else:
            self._wait_for_vote()

    def stirred(self) -> None:
        if self._news():
            self._wait_for_vote()

    @property
    def _is_time(self) -> bool:
        """Whether there is so much that this member votes at once.

        A vote has to have a chance: this member must have taken much since its last one, or the
        others must have come forward. Else, while a member is behind, each result would be followed
        by votes for the next one, as vain.
        """
        if self._voted:
            return False
        return self._since_vote >= 1.0 or (self._unstable >= 1.0 and self._progressed)

    def _wait_for_vote(self) -> None:
        if not self.env.timers.is_set(self, "vote"):
            self._set_timer()

    def _set_timer(self) -> None:
        """Vote after about an interval; at first sooner, when there is much or the view is new."""
        hurry = self._unstable >= 1.0 or self._is_new
        part = EARLY_VOTE_SHARE * 2.0 ** min(self._tries, 3) if hurry else 1.0
        pause = self.spec.interval * part * self.env.rng.uniform(0.5, 1.5)
        self.env.timers.set(self, "vote", self.env.now + pause)

    def on_timer(self, name: str) -> None:
        """Vote, even if that was done since the last result: the vote or the result may be lost."""
        if self._is_new or self._news():
            self._vote()

    # By hand -------------------------------------------------------------------------------------

    def begin_round(self) -> int:
        if self._view is None:
            return self.rounds_done
        goal = self.rounds_done + 1
        if len(self._view) > 1:
            self.env.out.send(Stable(self._view.id, ()))
        self._vote()
        return goal

    def stable_seqnos(self) -> dict[Address, int]:
        return {sender: self.stable.get(sender, 0) for sender in self._view or ()}

    # Voting --------------------------------------------------------------------------------------

    def _news(self) -> tuple[SenderMarks, ...]:
        """The marks of the senders of which not all that is known is stable."""
        stable = self.stable
        return tuple(m for m in self._table.marks() if m.high > stable.get(m.sender, 0))

    def _vote(self) -> None:
        if self._view is None:
            return
        marks = self._news()
        self._voted = True
        self._since_vote = 0.0
        self._tries += 1
        self._set_timer()
        if self._view.coordinator == self.env.me:
            self._count(self.env.me, marks)
        else:
            self.env.out.send(Vote(self._view.id, marks), self._view.coordinator)

    def on_frame(self, frame: Frame, source: Address) -> None:
        assert isinstance(frame, Vote | Stable)
        view = self._view
        if view is None or frame.view != view.id:
            self.env.counters["dropped_old_view"] += 1
        elif source not in view:
            self.env.counters["dropped_not_member"] += 1
        elif isinstance(frame, Stable):
            if not frame.marks:
                self._vote()
            elif source == view.coordinator:
                self._apply(frame.marks)
        elif view.coordinator == self.env.me:
            self._on_vote(frame, source, view)

    # The coordinator counts ----------------------------------------------------------------------

    def _on_vote(self, vote: Vote, source: Address, view: View) -> None:
        stable = self.stable
        is_old = all(mark.high <= stable.get(mark.sender, 0) for mark in vote.marks)
        if is_old and vote.marks and not self._is_new:
            # It has missed a result, and the others have no reason for a round.
            known = [(mark.sender, stable.get(mark.sender, 0)) for mark in vote.marks]
            again = tuple(SenderMarks(sender, low, low) for sender, low in known)
            self.env.out.send(Stable(view.id, again), source)
        else:
            self._count(source, vote.marks)

    def _count(self, member: Address, marks: tuple[SenderMarks, ...]) -> None:
        assert self._view is not None
        if member in self._votes:
            self.env.counters["second_votes"] += 1
            return
        self._votes[member] = {mark.sender: mark for mark in marks}
        if len(self._votes) == len(self._view):
            self._conclude(self._view)

    def _conclude(self, view: View) -> None:
        votes, self._votes = self._votes, {}
        voted = {sender for vote in votes.values() for sender in vote}
        # Where nothing is new, one mark says that this is a result: none would ask for votes.
        senders = [sender for sender in view if sender in voted] or [self.env.me]
        result = tuple([self._result(sender, votes) for sender in senders])
        self.env.counters["rounds"] += 1
        if len(view) > 1:
            self.env.out.send(Stable(view.id, result))
        self._apply(result)

    def _result(
        self, sender: Address, votes: dict[Address, dict[Address, SenderMarks]]
    ) -> SenderMarks:
        """The minimum and maximum of one sender; a vote without it stands at the last result."""
        last = self.stable.get(sender, 0)
        no_news = SenderMarks(sender, last, last)
        marks = [vote.get(sender, no_news) for vote in votes.values()]
        delivered, high = min(mark.delivered for mark in marks), max(mark.high for mark in marks)
        return SenderMarks(sender, delivered, high)

    # All members apply ---------------------------------------------------------------------------

    def _apply(self, result: tuple[SenderMarks, ...]) -> None:
        self.rounds_done += 1
        self._progressed = False
        for sender, delivered, _ in result:
            if delivered > self.stable.get(sender, 0):
                self.stable[sender] = delivered
                self._progressed = True
        self._table.stable(result)
        self._voted, self._is_new = False, False
        self._tries = 0 if self._progressed else self._tries
        self._recount()
        if not self._news():
            self.env.timers.cancel(self, "vote")
        elif self._is_time:
            self._vote()
        else:
            self._set_timer()

    def _recount(self) -> None:
        """Count anew what is taken and not stable; how much that is shrinks as its messages do."""
        before, stable = self._messages, self.stable
        marks = self._table.marks()
        self._messages = sum(max(0, m.delivered - stable.get(m.sender, 0)) for m in marks)
        self._unstable = self._unstable * self._messages / before if before else 0.0

    def on_view(self, installation: Installation) -> None:
        self._view = installation.view
        self._votes, self.stable = {}, {}
        self._messages = self._tries = 0
        self._unstable = self._since_vote = 0.0
        self._voted, self._progressed, self._is_new = False, False, True
        self._set_timer()

    def snapshot(self) -> StabilitySnapshot:
        is_counting = self._view is not None and self._view.coordinator == self.env.me
        missing = [m for m in self._view or () if is_counting and m not in self._votes]
        return StabilitySnapshot(
            stable=dict(self.stable),
            waits_for=tuple(missing) if self._votes else (),
            unstable=self._messages,
        )
