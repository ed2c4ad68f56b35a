"""What happens in a group, for the log: views as news, troubles as warnings.

Records carry their facts as data as well, in the attribute `ringcast`; the formatters here show
them as key=value or as JSON. Without a handler nothing is shown: the package's own is a null one.

A record is made in the middle of a member's step, so a handler must not call the group back, and
one that takes its time slows the member down.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from ringcast.core.events import (
    Event,
    Expelled,
    Merged,
    Outpaced,
    Skipped,
    Suspected,
    Undelivered,
    ViewChange,
)
from ringcast.errors import ConfigError
from ringcast.runtime.member import Member
from ringcast.runtime.words import Names, sentence

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

log = logging.getLogger("ringcast.group")
network = logging.getLogger("ringcast.network")


def keep_log(member: Member) -> None:
    """Log what happens to this member until it ends."""
    book = Logbook(member)
    member.stack.env.witness = book.note
    member.endings.append(book.end)


class Logbook:
    """Turns a member's events into log records."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._names = Names()
        self._complained = False

    def note(self, event: Event) -> None:
        """Something has happened."""
        match event:
            case ViewChange(view, joined, left):
                self._names.install(view)
                self._look_at_strangers()
                names = self._names.of
                members = names(view)
                self._log(
                    *(logging.INFO, "view", sentence(event, self._names)),
                    {"members": members, "joined": names(joined), "left": names(left)},
                )
            case Suspected(member):
                self._warn("suspected", event, peer=self._names[member])
            case Merged(_, subgroups):
                parts = [", ".join(self._names.of(part)) for part in subgroups]
                self._warn("merged", event, subgroups=parts)
            case Expelled(_, reason):
                self._warn("expelled", event, reason=reason)
            case Skipped(sender, first, last, reason):
                name = self._names[sender]
                self._warn("skipped", event, sender=name, first=first, last=last, reason=reason)
            case Undelivered(seqno, members):
                self._warn("undelivered", event, seqno=seqno, peers=self._names.of(members))
            case Outpaced(member, seconds):
                self._warn("outpaced", event, peer=self._names[member], seconds=seconds)

    def end(self) -> None:
        """The member is closed."""
        self._look_at_strangers()
        reason = self._member.closed or "closed"
        level = logging.INFO if self._member.left else logging.WARNING
        words = reason if reason in ("closed", "left") else f"closed: {reason}"
        self._log(level, "closed", words, {"reason": reason})

    def _look_at_strangers(self) -> None:
        """Others that cannot be understood are not in the view, and nobody would know why."""
        if self._member.stack.counters.get("dropped_wrong_version") and not self._complained:
            self._complained = True
            network.warning(
                "somebody within reach of %s speaks another version of the protocol, and is not"
                " heard: update one of the two; said once, counted as dropped_wrong_version",
                self._member.group,
            )

    def _warn(self, kind: str, event: Event, **facts: object) -> None:
        self._log(logging.WARNING, kind, sentence(event, self._names), facts)

    def _log(self, level: int, kind: str, words: str, facts: Mapping[str, object]) -> None:
        if not log.isEnabledFor(level):
            return
        member, view = self._member, self._member.view
        common = {"event": kind, "group": member.group, "member": member.peer.name}
        number = {} if view is None else {"view": view.id.number}
        extra = {"ringcast": {**common, **number, **facts}}
        log.log(level, "%s in %s: %s", member.peer.name, member.group, words, extra=extra)


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
    """Time, level, logger and words, then the facts as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a line."""
        pairs = [(name, value) for name, value in _facts(record).items() if value not in ("", [])]
        facts = "".join(f" {name}={_plain(value)}" for name, value in pairs)
        head = f"{_time_of_day(record)} {record.levelname:<7} {record.name}"
        return f"{head} {record.getMessage()}{facts}{_trace(self, record)}"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the facts beside them."""

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
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return json.dumps(text) if not text or any(c.isspace() or c in '"=' for c in text) else text
