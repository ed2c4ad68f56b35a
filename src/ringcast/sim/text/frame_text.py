"""Frames and events in words, with names instead of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import (
    Event,
    Expelled,
    Merged,
    Outpaced,
    Progress,
    QuorumLost,
    QuorumRegained,
    Skipped,
    StateAsked,
    Stateless,
    StateTaken,
    Suspected,
    Undelivered,
    ViewChange,
)
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire import frames as f

Name = Callable[[Address], str]


class FrameText:
    """Says what frames and events are about; `name` says what a member is called."""

    def __init__(self, name: Name) -> None:
        self._name = name

    def frame(self, frame: f.Frame, source: str) -> str:
        """A frame in a few words: its kind, and what matters of its fields."""
        detail = self._detail(frame, source)
        return f"{frame.kind} {detail}" if detail else frame.kind

    def _detail(self, frame: f.Frame, source: str) -> str:
        match frame:
            case f.Data():
                owner = self._name(frame.origin)
                seqnos = _span(frame.first, frame.first + len(frame.payloads) - 1)
                return seqnos if owner == source else f"of {owner} {seqnos}"
            case f.UnicastData():
                return _span(frame.first, frame.first + len(frame.payloads) - 1)
            case f.Ack() | f.UnicastAck():
                return str(frame.delivered)
            case f.Nak():
                return f"of {self._name(frame.origin)} {_ranges(frame.ranges)}"
            case f.UnicastNak():
                return _ranges(frame.ranges)
            case f.Last() | f.UnicastLast():
                return f"{frame.high} (freed to {frame.low})"
            case f.Vote() | f.Stable():
                return ", ".join(
                    f"{self._name(sender)} {delivered}/{high}"
                    for sender, delivered, high in frame.marks
                )
            case f.KnownSeqnos():
                return ", ".join(
                    f"of {self._name(sender)} {seqno}" for sender, seqno in frame.marks
                )
            case _:
                return self._membership(frame)

    def _membership(self, frame: f.Frame) -> str:
        match frame:
            case f.Present():
                return f"in {self.view_id(frame.view)}" if frame.view.number else "not in a view"
            case f.Prepare():
                without = f", without {self._names(frame.departed)}" if frame.departed else ""
                return f"{self.view_id(frame.proposal)} after {self.view_id(frame.base)}{without}"
            case f.Flushed():
                held = "".join(
                    f", holds {self._name(origin)} {low}-{handed}"
                    for origin, low, handed in frame.held
                )
                return f"{self.view_id(frame.proposal)}, stopped after {frame.sent}{held}"
            case f.Install():
                return self.view(frame.view)
            case f.Suspect():
                return self._names(frame.members)
            case f.Evict():
                return f"{self._name(frame.member)}: {frame.reason}"
            case f.Leave() | f.Installed():
                return self.view_id(frame.view)
            case f.Merge() | f.MergeReady() | f.Refused():
                return self.view_id(frame.proposal)
            case _:
                return ""

    def _news(self, event: Stateless | QuorumLost | QuorumRegained) -> str:
        if isinstance(event, Stateless):
            return "is told that it lacks the group's state"
        if isinstance(event, QuorumRegained):
            return "has a majority again"
        return f"has no majority: {self._names(event.missing)} are missing"

    def event(self, event: Event) -> str:
        """What an application was told."""
        match event:
            case Batch():
                alone = "" if event.dest is None else ", to it alone"
                return (
                    f"delivers {self._name(event.sender)} {_span(event.first, event.last)}{alone}"
                )
            case ViewChange():
                return f"is in view {self.view(event.view)}"
            case Merged():
                groups = " + ".join(self._names(group) for group in event.subgroups)
                return f"is told of a merge: {groups}"
            case Suspected():
                return f"suspects {self._name(event.member)}"
            case Expelled():
                return f"is told that the others went on without it: {event.reason}"
            case Stateless() | QuorumLost() | QuorumRegained():
                return self._news(event)
            case Skipped():
                sender = self._name(event.sender)
                return f"skips {sender} {_span(event.first, event.last)}: {event.reason}"
            case Undelivered():
                what = f"{event.count} messages" if event.direct else str(event.seqno)
                return f"is told that {self._names(event.members)} may lack {what}"
            case Outpaced():
                return f"no longer waits for {self._name(event.member)}"
            case StateAsked():
                return f"is asked for its state by {self._name(event.joiner)}"
            case StateTaken():
                return "has the group's state"
            case Progress():
                sender = self._name(event.sender)
                return f"has {event.done:,} of {event.total:,} bytes of a message of {sender}"

    def view(self, view: View) -> str:
        """A view with its members."""
        return f"{self.view_id(view.id)}: {self._names(view)}"

    def view_id(self, view: ViewId) -> str:
        """A view's number and coordinator."""
        return f"{view.number}@{self._name(view.coordinator)}"

    def _names(self, members: Iterable[Address]) -> str:
        return " ".join(map(self._name, members))


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _ranges(ranges: RangeSet) -> str:
    return ", ".join(_span(first, last) for first, last in ranges)
