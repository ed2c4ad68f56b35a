"""What one sender sent in one view, and how far each receiver has read it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ringcast.core.model.batch import Batch, Payload

CROWDED = 64
"""Runs after which it is worth while to look for what all members have read."""


class Accepted:
    """What a sender's stack has accepted and not numbered yet: a layer may hold it back."""

    __slots__ = ("_runs", "count")

    def __init__(self) -> None:
        self._runs: deque[Sequence[Payload]] = deque()
        self.count = 0

    def add(self, payloads: Sequence[Payload]) -> None:
        """The stack has accepted a run."""
        self._runs.append(payloads)
        self.count += len(payloads)

    def take(self, count: int) -> Sequence[Payload]:
        """The next messages, that have been numbered now; fewer when there are fewer."""
        if self._runs and len(self._runs[0]) == count:
            self.count -= count
            return self._runs.popleft()
        taken: list[Payload] = []
        while self._runs and len(taken) < count:
            run = self._runs.popleft()
            wanted = count - len(taken)
            taken += run[:wanted]
            if len(run) > wanted:
                self._runs.appendleft(run[wanted:])
        self.count -= len(taken)
        return taken


class SentRun(NamedTuple):
    """Messages with consecutive seqnos."""

    before: int
    """How many messages of the stream precede it."""
    last: int
    """The seqno of its last message."""
    payloads: Sequence[Payload]


class Stream:
    """The runs of one sender in one view; those that all members have read are forgotten."""

    __slots__ = ("_crowded_at", "_runs", "count", "last", "start")

    def __init__(self, start: int) -> None:
        self.start = self.last = start
        """The seqno before the first message."""
        self.count = 0
        self._runs: list[SentRun] = []
        self._crowded_at = CROWDED

    def append(self, payloads: Sequence[Payload], last: int) -> None:
        """The sender has numbered one more run, up to `last`."""
        self._runs.append(SentRun(self.count, last, payloads))
        self.count += len(payloads)
        self.last = last

    @property
    def crowded(self) -> bool:
        """Whether it is time to prune."""
        return len(self._runs) > self._crowded_at

    def prune(self, count: int) -> None:
        """Forget the runs that lie among the first `count` messages."""
        del self._runs[: self._find(count)]
        self._crowded_at = 2 * len(self._runs) + CROWDED

    def runs_from(self, count: int) -> Sequence[SentRun]:
        """The run that has the message behind the first `count`, and those that follow."""
        place = self._find(count)
        return self._runs[place:] if place else self._runs

    def seqno(self, count: int) -> int | None:
        """The seqno of the message behind the first `count`; None when it is not known."""
        if not self._runs or not self._runs[0].before <= count < self.count:
            return None
        run = self._runs[self._find(count)]
        return run.last - (len(run.payloads) - 1 - (count - run.before))

    def count_at(self, seqno: int) -> int:
        """How many messages of the stream have seqnos up to this one."""
        count = 0
        for run in self._runs:
            if run.last > seqno:
                return max(run.before, run.before + len(run.payloads) - (run.last - seqno))
            count = run.before + len(run.payloads)
        return count

    def _find(self, count: int) -> int:
        return max(0, bisect_right(self._runs, count, key=lambda run: run.before) - 1)


class Reader:
    """Up to where one application has taken a stream."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def read(self, stream: Stream, batch: Batch) -> str:
        """The application was given this batch; what is wrong with that, or nothing."""
        expected = stream.seqno(self.count)
        span = f"messages {batch.first}-{batch.last}"
        if batch.last > stream.last or expected is None:
            return f"{span}, though {stream.last} was its last"
        if batch.first != expected:
            self.count = stream.count_at(batch.last)
            return f"{span} when {expected} was due"
        before, self.count = self.count, self.count + len(batch)
        if not _same(stream, before, batch):
            return f"{span} with other bytes than were sent"
        return ""

    def skip(self, stream: Stream, last: int) -> None:
        """Messages up to this seqno will not come."""
        self.count = max(self.count, stream.count_at(last))


def _same(stream: Stream, before: int, batch: Batch) -> bool:
    """Whether these are the messages behind the first `before`, with their seqnos."""
    done, payloads = 0, batch.payloads
    for run in stream.runs_from(before):
        offset = before + done - run.before
        if done == offset == 0 and len(run.payloads) == len(payloads):
            # Nearly always: delivered as it was sent.
            return _equal(run.payloads, payloads) and run.last == batch.last
        part = run.payloads[offset : offset + len(payloads) - done]
        if not _equal(part, payloads[done : done + len(part)]):
            return False
        done += len(part)
        if done == len(payloads):
            return run.last - (len(run.payloads) - offset - len(part)) == batch.last
    return False


def _equal(some: Sequence[Payload], others: Sequence[Payload]) -> bool:
    """Whether these are the same bytes; a large message is alone, and may come as a view."""
    if len(some) == len(others) == 1:
        return _plain(some[0]) == _plain(others[0])
    return list(some) == list(others)


def _plain(payload: Payload) -> bytes:
    """What a view shows: views themselves are compared item by item, twenty times as slowly."""
    return payload if isinstance(payload, bytes) else bytes(payload)
