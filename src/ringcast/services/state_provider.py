"""Giving state: which members have asked for it, in what order, and what each of them was told.

A request becomes an event in the application's queue. When the application comes to it, it has
taken everything before it in the queue, and nothing behind it; so the marks of the queue's end,
noted when the event is put there, are exactly what the application's state contains then. What a
layer still holds, say until its place in the total order is known, comes behind it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.model.events import StateAsked
from ringcast.core.stack.env import Env
from ringcast.core.stack.ports import Control, Holding, Numbering
from ringcast.services.messages import ServiceMessage, StateBegin, StateMark, StateRefusal

TRANSFERS_MAX = 4
"""States that are given at once: each may be a copy of all that the application has."""
WAITING_MAX = 1_024
"""Newcomers that may wait for their turn; one on top of that is refused."""
QUEUED_MAX = 16
"""Requests of one newcomer in the application's queue, all but the last of them for nothing; one on
top of that is refused."""

Post = Callable[[Address, ServiceMessage, Payload], None]
"""Sends a service message."""


class StateTransfer:
    """A state on its way to one newcomer."""

    __slots__ = ("id", "joiner", "marks", "wanted")

    def __init__(self, joiner: Address, id: int) -> None:
        self.joiner = joiner
        self.id = id
        """The newcomer's number of its request."""
        self.marks: StateBegin | None = None
        """What the state contains, known once the request is in the application's queue."""
        self.wanted = True
        """False when the newcomer is gone, or asks elsewhere: stop."""


class StateProvider:
    """The requests that this member has got; one for each newcomer, the last."""

    def __init__(self, env: Env, post: Post) -> None:
        self._env = env
        self._post = post
        self._waiting: deque[StateTransfer] = deque()
        self._active: dict[Address, StateTransfer] = {}
        self._queued: Counter[Address] = Counter()
        """Requests that the application has not come to, by newcomer."""
        self.control: Control
        self.numbering: Numbering
        self.holding: tuple[Holding, ...] = ()
        """The layers that hold messages on their way to the application."""

    @property
    def active(self) -> list[StateTransfer]:
        """Those that are under way."""
        return list(self._active.values())

    def asked(self, joiner: Address, id: int) -> None:
        """A newcomer wants the state."""
        self.cancel((joiner,))
        if len(self._waiting) >= WAITING_MAX or self._queued[joiner] >= QUEUED_MAX:
            self._post(joiner, StateRefusal(id, 0), b"")
            return
        self._waiting.append(StateTransfer(joiner, id))
        self._admit()

    def find(self, event: StateAsked) -> StateTransfer | None:
        """The transfer that the application has reached, once per event; None when it is no longer
        wanted."""
        self._queued[event.joiner] -= 1
        if self._queued[event.joiner] <= 0:
            del self._queued[event.joiner]
        transfer = self._active.get(event.joiner)
        return transfer if transfer is not None and transfer.id == event.id else None

    def begin(self, transfer: StateTransfer) -> None:
        """The application has its state ready: pieces may follow."""
        assert transfer.marks is not None
        if transfer.wanted:
            self._post(transfer.joiner, transfer.marks, b"")

    def finish(self, transfer: StateTransfer, last: ServiceMessage, body: Payload = b"") -> None:
        """All is said, with this message; the next one has its turn."""
        if transfer.wanted:
            self._post(transfer.joiner, last, body)
            self._end(transfer)

    def cancel(self, joiners: Iterable[Address], id: int | None = None) -> None:
        """These want no state any more: they are gone, or ask elsewhere."""
        for joiner in joiners:
            transfer = self._active.get(joiner)
            if transfer is not None and id in (None, transfer.id):
                self._end(transfer)
            for waiting in list(self._waiting):
                if waiting.joiner == joiner and id in (None, waiting.id):
                    self._waiting.remove(waiting)

    def _end(self, transfer: StateTransfer) -> None:
        transfer.wanted = False
        del self._active[transfer.joiner]
        self._admit()

    def _admit(self) -> None:
        """Put the next requests into the application's queue, with where that stands."""
        while self._waiting and len(self._active) < TRANSFERS_MAX:
            transfer = self._waiting.popleft()
            view = self.control.view
            assert view is not None
            marks = tuple(StateMark(*mark) for mark in self._queued_marks().items())
            transfer.marks = StateBegin(transfer.id, view.id, marks)
            self._active[transfer.joiner] = transfer
            self._queued[transfer.joiner] += 1
            self.control.emit(StateAsked(transfer.joiner, transfer.id))

    def _queued_marks(self) -> dict[Address, int]:
        """Per member: the last of its messages that the application's queue has got."""
        marks = self.numbering.handed()
        for layer in self.holding:
            for sender, first in layer.held_from().items():
                if sender in marks:
                    marks[sender] = min(marks[sender], first - 1)
        return marks
