"""Seeking state: a newcomer asks one member after the other until it has the group's state.

The rules:

- It asks by seniority. A member without a state says so, and the next one is asked; one that does
  not answer within `BEGIN_TIMEOUT` is left for another, if there is one.
- A state counts only if it arrived whole, from a provider that stayed. When the provider leaves,
  what arrived is void and the next one is asked: its state is a later one, with later marks.
- A state counts only once everything that it contains has arrived here as well. Then this member
  keeps what the state was made of, as it keeps what it delivers, and the others get it too,
  whichever member crashes; so no survivor has a state that another cannot reach.
- When no member has a state, that is the answer. But when a member had one and failed, or went away
  half way, and no other can give it, that is a failure and is reported as one.
- A member that found no group and began alone without a state, and whose first company comes by a
  merge, does not have the group's state. If its application has not been told so far that there is
  none, it asks now; else it is told (`Stateless`), and newcomers ask it last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from enum import Enum

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Stateless, StateTaken
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part
from ringcast.core.stack.ports import Control, Intake, Numbering
from ringcast.services.messages import (
    StateBegin,
    StateCancel,
    StateEnd,
    StatePiece,
    StateRefusal,
    StateRequest,
    read_reason,
)
from ringcast.services.state_cutoff import StateCutoff
from ringcast.services.state_provider import Post

BEGIN_TIMEOUT = 5.0
"""Seconds that a member has to begin, before another is asked."""
LAST_RESORT = 2
"""In a refusal: the member gives its state only if no other member gives one."""
LOOK_INTERVAL = 0.02
"""Seconds between two looks whether everything has arrived that a state contains."""


class Stage(Enum):
    """How far a newcomer is."""

    ALONE = "it is in no view yet"
    ASKING = "it was asked and has not answered"
    READING = "the state is coming"
    CHECKING = "the state has come, and not yet all that it contains"
    READY = "the state has come"
    TAKEN = "the application has it"
    NONE = "no member has one"
    FAILED = "it could not be had"


UNDER_WAY = frozenset((Stage.ASKING, Stage.READING, Stage.CHECKING))
OVER = frozenset((Stage.TAKEN, Stage.NONE, Stage.FAILED))

StateMessage = StateRefusal | StateBegin | StatePiece | StateEnd


class StateRequester:
    """A newcomer's search for the state."""

    def __init__(self, env: Env, owner: Part, post: Post) -> None:
        self._env = env
        self._owner = owner
        """The part that is given the timers."""
        self._post = post
        self.control: Control
        self.numbering: Numbering
        self.intake: Intake
        self.stage = Stage.ALONE
        self.attempt = 0
        """Which request this is; a state that arrived in pieces is void when it changes."""
        self.news = 0
        """Rises when there is something new for the reader of the state."""
        self.provider: Address | None = None
        self.troubles: dict[Address, str] = {}
        """Why members that had a state did not give it."""
        self.newcomer: StateCutoff | None = None
        """What to leave out for the application, once it has the state."""
        self.is_told = False
        """Whether the application was told that there is no state."""
        self.lacks = False
        """Whether the members that this one merged with may have a state that it has not."""
        self._began_alone = False
        """Whether there was no other member to ask, and none has joined since."""
        self._refused: set[Address] = set()
        self._early = 0
        """What the intake acked early before the search ended."""
        self._reluctant: dict[Address, None] = {}
        """Members that give a state only if no other member does."""
        self._begin: StateBegin | None = None
        self._pieces: deque[tuple[Payload, Batch | None]] = deque()
        """Pieces that the application has not taken; the last of a batch with the batch."""

    @property
    def over(self) -> bool:
        """Whether the search is at its end."""
        return self.stage in OVER

    # What the application does --------------------------------------------------------------------

    def take(self) -> list[Payload]:
        """The pieces that are here; room is made for more."""
        taken = [piece for piece, _ in self._pieces]
        for _, batch in self._pieces:
            if batch is not None:
                self.intake.absorbed(batch)
        self._pieces.clear()
        return taken

    @property
    def waiting(self) -> bool:
        """Whether there are pieces to take."""
        return bool(self._pieces)

    def accept(self) -> None:
        """The application has made the state its own: now messages may follow."""
        assert self.stage is Stage.READY
        assert self._begin is not None
        self.newcomer = StateCutoff(self._begin.view, dict(self._begin.marks))
        self._finish(Stage.TAKEN)
        self.control.emit(StateTaken())

    def restart(self) -> None:
        """The application wants the state from the beginning."""
        if not self.over:
            self._drop()
            self._ask_next(self.provider)

    # What comes -----------------------------------------------------------------------------------

    def viewed(self, left: Collection[Address], is_merge: bool) -> None:
        """A view is installed."""
        for member in left:
            self._refused.discard(member)
            self._reluctant.pop(member, None)
        if self._began_alone:
            self._on_company(is_merge)
            return
        if self.stage is Stage.ALONE:
            self._ask_next(None)
        elif self.provider in left and self.stage in UNDER_WAY:
            if self.stage is not Stage.ASKING and self.provider is not None:
                self.troubles[self.provider] = "it is gone"
            self._drop()
            self._ask_next(None)

    def _on_company(self, is_merge: bool) -> None:
        """The first others since this member began alone: newcomers, or a group."""
        view = self.control.view
        assert view is not None
        if len(view) == 1:
            return
        self._began_alone = False
        if is_merge and self.is_told:
            self.lacks = True
            self.control.emit(Stateless(view))
        elif is_merge:
            self.intake.early = self._early
            self._ask_next(None)

    def read(self, message: StateMessage, body: Payload, source: Address) -> bool:
        """Handle a message about the state; True when it is a piece that is kept."""
        if self.over or (source, message.id) != (self.provider, self.attempt):
            return False
        self.news += 1
        match message, self.stage:
            case StateRefusal(), Stage.ASKING | Stage.READING:
                self._on_refuse(message, body, source)
            case StateBegin(), Stage.ASKING:
                self.stage, self._begin = Stage.READING, message
                self._env.timers.cancel(self._owner, "begin")
            case StatePiece(), Stage.READING:
                self._pieces.append((body, None))
                return True
            case StateEnd(), Stage.READING:
                self.stage = Stage.CHECKING
                self._look()
        return False

    def keep(self, batch: Batch) -> bool:
        """Keep a batch with its last piece; False when a refusal in it has dropped its pieces."""
        if not self._pieces:
            return False
        piece, _ = self._pieces.pop()
        self._pieces.append((piece, batch))
        return True

    def _on_refuse(self, message: StateRefusal, body: Payload, source: Address) -> None:
        self._refused.add(source)
        if message.failed == LAST_RESORT:
            self._reluctant[source] = None
        elif message.failed:
            self.troubles[source] = read_reason(body)
        self._drop()
        self._ask_next(source)

    def on_timer(self, name: str) -> None:
        """A provider does not begin, or a state may be complete."""
        if name == "begin" and self.stage is Stage.ASKING:
            others = self._candidates(self.provider)
            if others and others[0] != self.provider:
                self._drop()
                self._ask(others[0])
            else:
                self._wait()
        elif name == "look" and self.stage is Stage.CHECKING:
            self._look()

    # ----------------------------------------------------------------------------------------------

    def _candidates(self, after: Address | None) -> list[Address]:
        """The members to ask, by seniority, beginning behind a given one."""
        view = self.control.view
        assert view is not None
        at = view.rank(after) + 1 if after is not None and after in view else 0
        order = [*view.members[at:], *view.members[:at]]
        return [m for m in order if m != self._env.me and m not in self._refused]

    def _ask_next(self, after: Address | None) -> None:
        candidates = self._candidates(after)
        if candidates:
            self._ask(candidates[0])
        elif self._reluctant:
            member = next(iter(self._reluctant))
            del self._reluctant[member]
            self._ask(member)
        else:
            self._began_alone = len(self.control.view or ()) == 1
            self._finish(Stage.FAILED if self.troubles else Stage.NONE)

    def _ask(self, member: Address) -> None:
        self.attempt += 1
        self.news += 1
        self.provider, self.stage = member, Stage.ASKING
        self._post(member, StateRequest(self.attempt), b"")
        self._wait()

    def _wait(self) -> None:
        self._env.timers.set(self._owner, "begin", self._env.now + BEGIN_TIMEOUT)

    def _drop(self) -> None:
        """What this attempt has brought is void."""
        if self.provider is not None and self.provider not in self._refused:
            view = self.control.view
            if view is not None and self.provider in view:
                self._post(self.provider, StateCancel(self.attempt), b"")
        self.take()
        self._begin = None

    def _look(self) -> None:
        if self._has_come():
            self.stage = Stage.READY
            self.news += 1
        else:
            self._env.timers.set(self._owner, "look", self._env.now + LOOK_INTERVAL)

    def _has_come(self) -> bool:
        """Whether everything that the state contains has arrived here too."""
        assert self._begin is not None
        view, handed = self.control.view, self.numbering.handed()
        assert view is not None
        # In a later view than the provider's, all members have what was sent in that one.
        return view.id.number >= self._begin.view.number and all(
            handed.get(sender, seqno) >= seqno for sender, seqno in self._begin.marks
        )

    def _finish(self, stage: Stage) -> None:
        self.stage = stage
        self.news += 1
        self._early, self.intake.early = self.intake.early, 0
        for timer in ("begin", "look"):
            self._env.timers.cancel(self._owner, timer)
