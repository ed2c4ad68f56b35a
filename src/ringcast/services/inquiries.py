"""Inquiries: a member asks the others for their figures, so that one place shows the whole group.

Question and answer are control frames, beside windows and flow control: a member whose sends are
blocked answers as well. Neither is resent: a member asks again a second later. Only members of the
view are answered, and in a closed group only frames of keyholders arrive at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import Frame, StatsReply, StatsRequest

ASK_SECONDS = 0.05
"""A member is answered no more often than this: a report is much larger than its question."""
QUESTIONS_MAX = 16
"""Questions whose answers are still accepted."""
REPORT_MAX = 200_000
"""Bytes of the largest report: it has to fit a frame."""


class Received(NamedTuple):
    """The last report of a member."""

    content: bytes
    at: float
    """When it arrived."""
    round_trip: float
    """Seconds from the question to the answer, the other member's turn included."""


class Inquiries:
    """What one member was asked, and what it was told."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self.asked: dict[Address, int] = {}
        """Members that wait for a report, each with the number of its last question."""
        self._answered: dict[Address, float] = {}
        """When each member was answered last."""
        self.reports: dict[Address, Received] = {}
        self._id = 0
        self._asked_at: dict[int, float] = {}
        """When each of the last questions was asked, by its number."""

    def ask(self, members: Iterable[Address]) -> None:
        """Ask these members; their reports replace former ones."""
        self._id += 1
        self._asked_at[self._id] = self._env.now
        self._asked_at.pop(self._id - QUESTIONS_MAX, None)
        for member in members:
            if member != self._env.me:
                self._env.out.send(StatsRequest(self._id), member)

    def answer(self, content: bytes) -> None:
        """Give this report to the member that has waited longest for one."""
        member = next(iter(self.asked))
        id = self.asked.pop(member)
        self._answered[member] = self._env.now
        if len(content) <= REPORT_MAX:
            self._env.out.send(StatsReply(id, content), member)
        else:
            self._env.counters["dropped_oversized"] += 1

    def on_frame(self, frame: Frame, source: Address, view: View | None) -> None:
        """A question or an answer has arrived."""
        if view is None or source not in view:
            self._env.counters["dropped_not_member"] += 1
        elif isinstance(frame, StatsRequest):
            if self._env.now >= self._answered.get(source, -math.inf) + ASK_SECONDS:
                self.asked[source] = frame.id
        elif isinstance(frame, StatsReply) and frame.id in self._asked_at:
            now = self._env.now
            self.reports[source] = Received(frame.content, now, now - self._asked_at[frame.id])

    def gone(self, members: Iterable[Address]) -> None:
        """These members are no longer in the view."""
        for member in members:
            self.reports.pop(member, None)
            self.asked.pop(member, None)
            self._answered.pop(member, None)
