"""Events of a group as lines for people, or as JSON for programs; nothing is printed here.

Control characters in text that other members sent are escaped: a message must not control the
terminal of its reader, and every message is one line.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import fields

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import (
    DatagramsResized,
    Event,
    Expelled,
    Merged,
    Notice,
    QuorumLost,
    QuorumRegained,
    Skipped,
    Stateless,
    Suspected,
    ViewChange,
)
from ringcast.core.model.text import printable
from ringcast.core.model.view import View

Write = Callable[[str], None]


class TextEventWriter:
    """For people: messages to one stream, everything else to another."""

    def __init__(self, out: Write, aside: Write) -> None:
        self._out = out
        self._aside = aside
        self._names = Names()

    def joined(self, group: str, name: str, me: Address, endpoint: str) -> None:
        """This member has joined."""
        self._aside(f"joined {printable(group)} as {printable(name)} at {endpoint}")

    def hint(self, text: str) -> None:
        """Write what the user may have to do."""
        self._aside(text)

    def show(self, event: Event) -> None:
        """Write an event."""
        if isinstance(event, Batch):
            name = self._names[event.sender]
            self._out("\n".join([f"{name}: {_payload_text(p)}" for p in event.payloads]))
        else:
            if isinstance(event, ViewChange):
                self._names.install(event.view)
            self._aside(sentence(event, self._names))

    def left(self) -> None:
        """This member has left."""
        self._aside("left")


class JsonEventWriter:
    """For programs: one JSON object per line, each with its `type`."""

    def __init__(self, out: Write) -> None:
        self._out = out
        self._names = Names()

    def joined(self, group: str, name: str, me: Address, endpoint: str) -> None:
        """This member has joined."""
        self._say("joined", group=group, name=name, address=str(me), endpoint=endpoint)

    def hint(self, text: str) -> None:
        """Nothing: programs have the endpoint."""

    def show(self, event: Event) -> None:
        """Write an event."""
        match event:
            case Batch():
                self._show_batch(event)
            case ViewChange(view, joined, left):
                self._names.install(view)
                names = self._names.of
                self._say(
                    "view",
                    id=str(view.id),
                    members=names(view),
                    joined=names(joined),
                    left=names(left),
                )
            case _:
                values = {f.name: self._plain(getattr(event, f.name)) for f in fields(event)}
                self._say(type(event).__name__.lower(), **values)

    def left(self) -> None:
        """This member has left."""
        self._say("left")

    def _show_batch(self, batch: Batch) -> None:
        sender = {"from": self._names[batch.sender], "address": str(batch.sender)}
        lines = [
            json.dumps({"type": "message", **sender, "seqno": seqno, **_payload_fields(payload)})
            for seqno, payload in enumerate(batch.payloads, batch.first)
        ]
        self._out("\n".join(lines))

    def _say(self, kind: str, **values: object) -> None:
        self._out(json.dumps({"type": kind, **values}))

    def _plain(self, value: object) -> object:
        match value:
            case Address():
                return self._names[value]
            case View():
                return str(value.id)
            case tuple():
                return [self._plain(item) for item in value]
            case _:
                return value


class Names:
    """What people call the members of the view, and of the one before it."""

    def __init__(self) -> None:
        self._names: dict[Address, str] = {}
        self._former: dict[Address, str] = {}

    def install(self, view: View) -> None:
        """A view is installed."""
        self._former = self._names
        self._names = {peer.address: printable(peer.name) for peer in view.peers}

    def __getitem__(self, member: Address) -> str:
        return self._names.get(member) or self._former.get(member) or str(member)

    def of(self, members: Iterable[Address]) -> list[str]:
        """The names of several."""
        return [self[member] for member in members]


def _payload_text(payload: Payload) -> str:
    return printable(bytes(payload).decode("utf-8", "backslashreplace"))


def _payload_fields(payload: Payload) -> dict[str, str]:
    """The text, or what cannot be text in base64."""
    data = bytes(payload)
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def sentence(event: Notice, names: Names) -> str:
    """An event as one line for people; text that other members sent is escaped."""
    return printable(_sentence(event, names))


def _sentence(event: Notice, names: Names) -> str:
    match event:
        case ViewChange(view, joined, left):
            others = [member for member in joined if len(view) > len(joined)]
            news = [f"{name} joined" for name in names.of(others)]
            news += [f"{name} left" for name in names.of(left)]
            about = f" ({', '.join(news)})" if news else ""
            return f"view {view.id.number}: {', '.join(names.of(view))}{about}"
        case Suspected(member):
            return f"{names[member]} does not answer, and is suspected to have crashed"
        case Merged(_, subgroups):
            return f"{len(subgroups)} groups that had been apart are one again"
        case Expelled(_, reason):
            return f"this member is alone now, until a merge: {reason}"
        case Stateless():
            return (
                "this member began without a state and has merged with others that may have one:"
                " leave and join again to get it"
            )
        case QuorumLost(_, missing):
            who = ", ".join(names.of(missing)) or "members"
            return f"sends wait: {who} are missing for a majority of the last agreed view"
        case QuorumRegained():
            return "a majority is together again, and sends go on"
        case Skipped():
            count = event.last - event.first + 1
            return f"{count} messages of {names[event.sender]} will not come: {event.reason}"
        case DatagramsResized():
            return _resized(event, names)
        case _:
            return str(event)


def _resized(event: DatagramsResized, names: Names) -> str:
    now = f"datagrams have up to {event.size:,} bytes now"
    if event.source == "view" or not event.members:
        reason = {
            "view": "the least of what the members take",
            "interface": "what fits a packet of the interface",
        }.get(event.source, "which arrive at all members")
        return f"{now}, {reason} (before: {event.former:,})"
    where = " and ".join(names.of(event.members))
    return f"{now}: those of {event.former:,} bytes do not arrive at {where}, smaller ones do"
