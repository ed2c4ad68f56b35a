"""Seeking state: a newcomer asks one member after the other until it has the group's state.

The rules:

- It asks by seniority. Who has none says so, and the next one is asked; who does not come to answer
  within `PATIENCE` is left for another, if there is one.
- A state counts only if it came whole, from somebody who stayed. When the giver leaves, all that
  came is void and the next one is asked: its state is that of a later moment, with later marks.
- A state counts only once everything that it contains has come here as well. Then this member keeps
  what the state was made of, as it keeps what it delivers, and the others get it too whoever
  crashes; so no survivor has a state that another cannot come to.
- When nobody has a state, that is the answer. But when somebody had one and failed, or went away
  half way, and nobody else can give it, that is a failure and is said to be one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from enum import Enum

from ringcast.core.address import Address
from ringcast.core.batch import Batch, Payload
from ringcast.core.env import Env
from ringcast.core.events import StateTaken
from ringcast.core.part import Part
from ringcast.core.ports import Control, Intake, Numbering
from ringcast.services.filter import Newcomer
from ringcast.services.giver import Post
from ringcast.services.letters import Ask, Begin, Cancel, End, Piece, Refuse

PATIENCE = 5.0
"""Seconds that a member has to begin, before another is asked."""
LOOK_INTERVAL = 0.02
"""Seconds between two looks whether everything has come that a state contains."""


class Stage(Enum):
    """How far a newcomer is."""

    ALONE = "it is in no view yet"
    ASKING = "it was asked and has not answered"
    READING = "the state is coming"
    CHECKING = "the state has come, and not yet all that it contains"
    READY = "the state has come"
    TAKEN = "the application has it"
    NONE = "nobody has one"
    FAILED = "it could not be had"


UNDER_WAY = frozenset((Stage.ASKING, Stage.READING, Stage.CHECKING))
OVER = frozenset((Stage.TAKEN, Stage.NONE, Stage.FAILED))

StateLetter = Refuse | Begin | Piece | End


class Seeker:
    """A newcomer's search for the state."""

    def __init__(self, env: Env, owner: Part, post: Post) -> None:
        self._env = env
        self._owner = owner
        """Who is given the timers."""
        self._post = post
        self.control: Control
        self.numbering: Numbering
        self.intake: Intake
        self.stage = Stage.ALONE
        self.attempt = 0
        """Which request this is; a state that came in pieces is void when it changes."""
        self.news = 0
        """Rises when there is something new for whoever reads the state."""
        self.giver: Address | None = None
        self.troubles: dict[Address, str] = {}
        """Why those who had a state did not give it."""
        self.newcomer: Newcomer | None = None
        """What to leave out for the application, once it has the state."""
        self._refused: set[Address] = set()
        self._begin: Begin | None = None
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
        self.newcomer = Newcomer(self._begin.view, dict(self._begin.marks))
        self._finish(Stage.TAKEN)
        self.control.emit(StateTaken())

    def restart(self) -> None:
        """The application wants the state from the beginning."""
        if not self.over:
            self._drop()
            self._ask_next(self.giver)

    # What comes -----------------------------------------------------------------------------------

    def viewed(self, left: Collection[Address]) -> None:
        """A view is installed."""
        for member in left:
            self._refused.discard(member)
        if self.stage is Stage.ALONE:
            self._ask_next(None)
        elif self.giver in left and self.stage in UNDER_WAY:
            if self.stage is not Stage.ASKING and self.giver is not None:
                self.troubles[self.giver] = "it is gone"
            self._drop()
            self._ask_next(None)

    def read(self, letter: StateLetter, body: Payload, source: Address) -> bool:
        """A letter about the state has come; True when it is a piece that is kept."""
        if self.over or (source, letter.id) != (self.giver, self.attempt):
            return False
        self.news += 1
        match letter, self.stage:
            case Refuse(), Stage.ASKING | Stage.READING:
                self._on_refuse(letter, body, source)
            case Begin(), Stage.ASKING:
                self.stage, self._begin = Stage.READING, letter
                self._env.timers.cancel(self._owner, "patience")
            case Piece(), Stage.READING:
                self._pieces.append((body, None))
                return True
            case End(), Stage.READING:
                self.stage = Stage.CHECKING
                self._look()
        return False

    def keep(self, batch: Batch) -> None:
        """The last piece that was kept is the last one of this batch."""
        piece, _ = self._pieces.pop()
        self._pieces.append((piece, batch))

    def _on_refuse(self, letter: Refuse, body: Payload, source: Address) -> None:
        self._refused.add(source)
        if letter.failed:
            self.troubles[source] = bytes(body).decode(errors="replace")
        self._drop()
        self._ask_next(source)

    def on_timer(self, name: str) -> None:
        """Somebody does not begin, or a state may be complete."""
        if name == "patience" and self.stage is Stage.ASKING:
            others = self._candidates(self.giver)
            if others and others[0] != self.giver:
                self._drop()
                self._ask(others[0])
            else:
                self._wait()
        elif name == "look" and self.stage is Stage.CHECKING:
            self._look()

    # ----------------------------------------------------------------------------------------------

    def _candidates(self, after: Address | None) -> list[Address]:
        """Whom to ask, by seniority, beginning behind somebody."""
        view = self.control.view
        assert view is not None
        at = view.rank(after) + 1 if after is not None and after in view else 0
        order = [*view.members[at:], *view.members[:at]]
        return [m for m in order if m != self._env.me and m not in self._refused]

    def _ask_next(self, after: Address | None) -> None:
        candidates = self._candidates(after)
        if candidates:
            self._ask(candidates[0])
        else:
            self._finish(Stage.FAILED if self.troubles else Stage.NONE)

    def _ask(self, member: Address) -> None:
        self.attempt += 1
        self.news += 1
        self.giver, self.stage = member, Stage.ASKING
        self._post(member, Ask(self.attempt), b"")
        self._wait()

    def _wait(self) -> None:
        self._env.timers.set(self._owner, "patience", self._env.now + PATIENCE)

    def _drop(self) -> None:
        """What came of this attempt is void."""
        if self.giver is not None and self.giver not in self._refused:
            view = self.control.view
            if view is not None and self.giver in view:
                self._post(self.giver, Cancel(self.attempt), b"")
        self.take()
        self._begin = None

    def _look(self) -> None:
        if self._has_come():
            self.stage = Stage.READY
            self.news += 1
        else:
            self._env.timers.set(self._owner, "look", self._env.now + LOOK_INTERVAL)

    def _has_come(self) -> bool:
        """Whether everything that the state contains has come here too."""
        assert self._begin is not None
        view, handed = self.control.view, self.numbering.handed()
        assert view is not None
        # In a later view than the giver's, everybody has what was sent in that one.
        return view.id.number >= self._begin.view.number and all(
            handed.get(sender, seqno) >= seqno for sender, seqno in self._begin.marks
        )

    def _finish(self, stage: Stage) -> None:
        self.stage = stage
        self.news += 1
        self.intake.early = 0
        for timer in ("patience", "look"):
            self._env.timers.cancel(self._owner, timer)
