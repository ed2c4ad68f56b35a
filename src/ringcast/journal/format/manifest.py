"""Manifests: what a sealed segment holds, so that readers plan without opening it.

One small JSON file a segment, written once and never changed; one more a recorder for what its
retention removed. Since a name carries its recorder, two recorders never write the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ringcast.core.model.text import shortened
from ringcast.journal.format.coverage import CoveredRange, ViewDigest
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files, publish, read_whole
from ringcast.journal.format.layout import (
    Layout,
    is_segment_name,
    name_of,
    stem_of,
    temporary,
)
from ringcast.journal.format.members import SeenMembers, from_json, to_json
from ringcast.journal.format.spans import Spans, from_text, normal, to_text


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One sealed segment; times are microseconds since 1970."""

    name: str
    group: str
    recorder: int
    number: int
    rows: int
    bytes: int
    """The size of the Parquet file."""
    opened_at: int
    sealed_at: int
    delivered_at: tuple[int, int]
    """When its first and its last message were delivered; see `sent_at`."""
    durable: bool
    """Whether the recorder acked only after a sync."""
    ended: str
    """ROLLED, CLOSED, or RECOVERED when the recorder died and another process sealed it."""
    torn_bytes: int
    """What was behind the last whole record of a dead recorder's log; it was never synced."""
    views: tuple[ViewDigest, ...]
    holes: Mapping[int, Spans]
    """What the recorder did not get, by sender."""
    sent_at: tuple[int, int] | None = None
    """The least and the greatest of the times of sending, None in the first format. With it
    `delivered_at` is the least and the greatest as well, also when the clock was set back."""
    members: SeenMembers = field(default_factory=dict)
    """The members of views that began in it."""
    parts: tuple[tuple[int, int], ...] = ()
    """Of a compacted one, the number and the rows of each segment that it stands for, in order."""

    @property
    def replaced(self) -> list[str]:
        """The names of the segments that it stands for."""
        stem = stem_of(self.group, self.recorder)
        return [name_of(stem, number) for number, _ in self.parts]

    @cached_property
    def cover(self) -> dict[int, Spans]:
        """What the segment covers, by sender."""
        pairs: dict[int, list[tuple[int, int]]] = {}
        for digest in self.views:
            for sender, pieces in digest.senders.items():
                pairs.setdefault(sender, []).extend((first, last) for first, last, _ in pieces)
        return {sender: normal(spans) for sender, spans in pairs.items()}


@dataclass(frozen=True)
class Removed:
    """What one recorder's retention took away, and the segments that it was taking."""

    group: str
    cover: Mapping[int, Spans]
    """By sender; the one removed last is the last."""
    names: tuple[str, ...] = field(default=())
    """Segments that are gone for readers, though a crash may have left their files."""
    members: SeenMembers = field(default_factory=dict)
    """Those of the segments that are gone."""


ROLLED, CLOSED, RECOVERED = "rolled", "closed", "recovered"


def write_segment(files: Files, layout: Layout, segment: Segment) -> None:
    """Make a segment known, in one step."""
    path = layout.manifest(segment.name)
    publish(files, temporary(path), path, [segment_line(segment)])


def segment_line(segment: Segment) -> bytes:
    """The manifest of a segment as one line."""
    return _dump(_segment_to_json(segment))


def segment_of_line(line: bytes, path: Path) -> Segment:
    """The segment of a line in this file; raises JournalError."""
    try:
        return _segment_from_json(_checked(json.loads(line), path))
    except _WRONG_CONTENT as error:
        raise _no_manifest(path) from error


def write_removed(files: Files, path: Path, removed: Removed) -> None:
    """Replace what a recorder's retention took away, in one step."""
    content = {
        "format": FORMAT,
        "group": removed.group,
        "removed": _spans_to_json(removed.cover),
        "names": list(removed.names),
        "members": to_json(removed.members),
    }
    publish(files, temporary(path), path, [_dump(content)])


def read_segment(path: Path) -> Segment:
    """The segment of a manifest; raises JournalError when it is not a manifest of this version."""
    content = _load(path)
    try:
        return _segment_from_json(content)
    except _WRONG_CONTENT as error:
        raise _no_manifest(path) from error


def read_removed(path: Path) -> Removed:
    """What a recorder's retention took away; raises JournalError when the file is none of ours."""
    content = _load(path)
    try:
        group, names = content["group"], content["names"]
        if not isinstance(group, str) or not isinstance(names, list):
            raise _no_manifest(path)
        cover = _spans_from_json(content["removed"])
        members = from_json(content.get("members", []))
    except _WRONG_CONTENT as error:
        raise _no_manifest(path) from error
    return Removed(group, cover, tuple(map(str, names)), members)


def _segment_to_json(segment: Segment) -> dict[str, object]:
    content: dict[str, object] = {"format": FORMAT}
    for name in (*TEXTS, *NUMBERS):
        content[name] = getattr(segment, name)
    content["durable"] = segment.durable
    content["delivered_at"] = list(segment.delivered_at)
    if segment.sent_at is not None:
        content["sent_at"] = list(segment.sent_at)
    if segment.parts:
        content["parts"] = [list(part) for part in segment.parts]
    if segment.members:
        content["members"] = to_json(segment.members)
    content["holes"] = _spans_to_json(segment.holes)
    content["views"] = [
        {
            "view": digest.view,
            "view_by": digest.view_by,
            "senders": {str(sender): pieces for sender, pieces in digest.senders.items()},
        }
        for digest in segment.views
    ]
    return content


def _segment_from_json(content: Mapping[str, object]) -> Segment:
    """Raises one of KeyError, TypeError, ValueError and AttributeError when it is not a segment."""
    texts = {name: _text(content[name]) for name in TEXTS}
    numbers = {name: _number(content[name]) for name in NUMBERS}
    if not is_segment_name(texts["name"]):  # A path that leads elsewhere, say.
        raise ValueError
    return Segment(
        name=texts["name"],
        group=texts["group"],
        ended=texts["ended"],
        recorder=numbers["recorder"],
        number=numbers["number"],
        rows=numbers["rows"],
        bytes=numbers["bytes"],
        opened_at=numbers["opened_at"],
        sealed_at=numbers["sealed_at"],
        torn_bytes=numbers["torn_bytes"],
        durable=content["durable"] is True,
        delivered_at=_pair(content["delivered_at"]),
        views=tuple(map(_view_from_json, _items(content["views"]))),
        holes=_spans_from_json(content["holes"]),
        sent_at=_pair(content["sent_at"]) if "sent_at" in content else None,
        members=from_json(content["members"]) if "members" in content else {},
        parts=tuple(map(_pair, _items(content.get("parts", [])))),
    )


def _view_from_json(content: object) -> ViewDigest:
    view = _table(content)
    senders = {
        int(sender): tuple(CoveredRange(*map(_number, _items(piece))) for piece in _items(pieces))
        for sender, pieces in _table(view["senders"]).items()
    }
    return ViewDigest(_number(view["view"]), _number(view["view_by"]), senders)


def _spans_to_json(cover: Mapping[int, Spans]) -> dict[str, str]:
    return {str(sender): to_text(spans) for sender, spans in cover.items()}


def _spans_from_json(content: object) -> dict[int, Spans]:
    return {int(sender): from_text(_text(text)) for sender, text in _table(content).items()}


def _dump(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _load(path: Path) -> dict[str, object]:
    try:
        content = _table(json.loads(read_whole(path)))
    except _WRONG_CONTENT as error:
        raise _no_manifest(path) from error
    return _checked(content, path)


def _checked(value: object, path: Path) -> dict[str, object]:
    """What was read, when it is a table of a format that can be read."""
    content = _table(value)
    if content.get("format") not in FORMATS:
        shown = shortened(repr(content.get("format")), FORMAT_SHOWN)
        raise JournalError(
            f"{path} has the format {shown}, and this version reads {FORMAT}: "
            "use the version of Ringcast that wrote it"
        )
    return content


def _no_manifest(path: Path) -> JournalError:
    return JournalError(f"{path} is damaged or no manifest of a journal: move it away")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def _pair(value: object) -> tuple[int, int]:
    first, last = map(_number, _items(value))
    return first, last


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


_WRONG_CONTENT = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a manifest raises that is another thing, or nested beyond all measure."""
FORMAT = 2
FORMAT_SHOWN = 50
"""Characters of another format that are shown."""
FORMATS = (1, FORMAT)
"""Those that can be read; the first had no members, no times of sending, no names of senders."""
TEXTS = ("name", "group", "ended")
NUMBERS = ("recorder", "number", "rows", "bytes", "opened_at", "sealed_at", "torn_bytes")
