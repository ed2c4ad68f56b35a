"""Logs the events of a group: views as information, failures as warnings.

Records carry their facts as data as well, in the attribute `ringcast`; the formatters here show
them as key=value or as JSON. Without a handler nothing is shown: the package's own is a null one.

A record is made inside a step of the member, so a handler must not call the group, and a slow
handler slows the member.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from ringcast.control.membership.part import MembershipSnapshot
from ringcast.core.model.address import Address
from ringcast.core.model.events import (
    DatagramsResized,
    Event,
    Expelled,
    Merged,
    Notice,
    Outpaced,
    QuorumLost,
    QuorumRegained,
    Skipped,
    Stateless,
    Suspected,
    Undelivered,
    ViewChange,
)
from ringcast.core.model.text import printable
from ringcast.errors import ConfigError
from ringcast.runtime.member.member import Member
from ringcast.runtime.ops.event_text import Names, sentence

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

log = logging.getLogger("ringcast.group")
network = logging.getLogger("ringcast.network")


def keep_log(member: Member) -> None:
    """Log what happens to this member until it ends."""
    logger = EventLogger(member)
    member.stack.env.listener = logger.note
    member.endings.append(logger.end)
    logger.begin()


class EventLogger:
    """Turns a member's events into log records."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._names = Names()
        self._complained = False
        self._suspected: set[Address] = set()
        """Members that were suspected since the last view."""

    def begin(self) -> None:
        """The member looks for its group: say whether that is open or closed."""
        security = self._member.security
        self._log(logging.INFO, "security", str(security), security.facts())

    def note(self, event: Notice) -> None:
        """Something has happened."""
        match event:
            case ViewChange(view, joined, left):
                self._names.install(view)
                self._look_at_strangers()
                names = self._names.of
                members = names(view)
                self._remember(event)
                self._log(
                    *(logging.INFO, "view", sentence(event, self._names)),
                    {"members": members, "joined": names(joined), "left": names(left)},
                )
            case Suspected(member):
                self._suspected.add(member)
                self._warn("suspected", event, peer=self._names[member])
            case Merged(_, subgroups):
                self._amend("groups that were apart have merged")
                parts = [", ".join(self._names.of(part)) for part in subgroups]
                self._warn("merged", event, subgroups=parts)
            case Expelled(_, reason):
                why = reason or "the others went on without it"
                self._amend(f"this member was expelled: {why}")
                self._warn("expelled", event, reason=reason)
            case Stateless():
                self._warn("stateless", event)
            case QuorumLost(_, missing):
                self._warn("quorum_lost", event, missing=self._names.of(missing))
            case QuorumRegained():
                self._warn("quorum_regained", event)
            case Skipped(sender, first, last, reason):
                name = self._names[sender]
                self._warn("skipped", event, sender=name, first=first, last=last, reason=reason)
            case Undelivered(seqno, members, _, count):
                peers = self._names.of(members)
                self._warn("undelivered", event, seqno=seqno, peers=peers, count=count)
            case Outpaced(member, seconds):
                self._warn("outpaced", event, peer=self._names[member], seconds=seconds)
            case DatagramsResized(size, former, source, members):
                level = logging.WARNING if source != "view" and size < former else logging.INFO
                facts = {"bytes": size, "former": former, "source": source}
                text = sentence(event, self._names)
                self._log(level, "resized", text, {**facts, "peers": self._names.of(members)})

    def _amend(self, why: str) -> None:
        """Add to the reasons for the last view."""
        if self._member.history:
            self._member.history[-1]["why"] += f" ({why})"

    def _remember(self, event: ViewChange) -> None:
        """Keep the view and the reason for it, for people who watch the group."""
        names, view = self._names, event.view
        ways = [f"{names[member]} joined" for member in event.joined]
        if self._member.peer.address in event.joined:  # Its first view: it knows of no other's.
            ways = [f"{self._member.peer.name} joined"]
        evicted = self._evicted()
        for member in event.left:
            if member in evicted:
                how = f"was evicted: it {evicted[member]}"
            else:
                how = "crashed or was cut off" if member in self._suspected else "left"
            ways.append(f"{names[member]} {how}")
        self._suspected.clear()
        self._member.history.append(
            {
                "at": time.time(),
                "number": view.id.number,
                "members": names.of(view),
                "joined": names.of(event.joined),
                "left": names.of(event.left),
                "why": ", ".join(ways) or "the same members",
            }
        )

    def _evicted(self) -> Mapping[Address, str]:
        """The members that the last view is without on purpose, and why: a coordinator knows."""
        membership = self._member.stack.snapshot().roles.get("membership")
        return membership.evicted if isinstance(membership, MembershipSnapshot) else {}

    def end(self) -> None:
        """The member is closed."""
        self._look_at_strangers()
        reason = self._member.closed or "closed"
        level = logging.INFO if self._member.left else logging.WARNING
        text = reason if reason in ("closed", "left") else f"closed: {printable(reason)}"
        self._log(level, "closed", text, {"reason": reason})

    def _look_at_strangers(self) -> None:
        """Others that cannot be understood are not in the view, and the user would not know why."""
        if self._member.stack.counters.get("dropped_wrong_version") and not self._complained:
            self._complained = True
            network.warning(
                "a process within reach of %s speaks another version of the protocol, and is not"
                " heard: update one of the two; said once, counted as dropped_wrong_version",
                self._member.group,
            )

    def _warn(self, kind: str, event: Event, **facts: object) -> None:
        self._log(logging.WARNING, kind, sentence(event, self._names), facts)

    def _log(self, level: int, kind: str, text: str, facts: Mapping[str, object]) -> None:
        if not log.isEnabledFor(level):
            return
        member, view = self._member, self._member.view
        common = {"event": kind, "group": member.group, "member": member.peer.name}
        number = {} if view is None else {"view": view.id.number}
        extra = {"ringcast": {**common, **number, **facts}}
        log.log(level, "%s in %s: %s", member.peer.name, member.group, text, extra=extra)


# Showing it ---------------------------------------------------------------------------------------


def show_log(form: str, level: str, stream: TextIO | None = None) -> None:
    """Write this package's records from `level` on, as "text" or "json" lines. Raises ConfigError.

    Standard error is where they go unless told otherwise; call it once.
    """
    if form not in FORMATS or level not in LEVELS:
        raise ConfigError(
            f'the log is "{form}" from "{level}" on: give one of {", ".join(FORMATS)}, and one of'
            f" {', '.join(LEVELS)}"
        )
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger("ringcast")
    root.addHandler(handler)
    root.setLevel(level.upper())
    root.propagate = False


class TextLines(logging.Formatter):
    """Time, level, logger and text, then the facts as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a line."""
        pairs = [(name, value) for name, value in _facts(record).items() if value not in ("", [])]
        facts = "".join(f" {name}={_plain(value)}" for name, value in pairs)
        head = f"{_time_of_day(record)} {record.levelname:<7} {record.name}"
        return f"{head} {printable(record.getMessage())}{facts}{_trace(self, record)}"


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the facts."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a line."""
        line = {
            "time": _time_of_day(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        trace = _trace(self, record)
        return json.dumps({**line, "trace": trace.strip()} if trace else line, default=str)


def _facts(record: logging.LogRecord) -> Mapping[str, object]:
    facts = getattr(record, "ringcast", None)
    return facts if isinstance(facts, Mapping) else {}


def _time_of_day(record: logging.LogRecord) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{moment}.{int(record.msecs):03d}Z"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return "\n" + formatter.formatException(record.exc_info) if record.exc_info else ""


def _plain(value: object) -> str:
    """A value without blanks, so that the pairs can be told apart."""
    text = printable(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return json.dumps(text) if not text or any(c.isspace() or c in '"=' for c in text) else text
