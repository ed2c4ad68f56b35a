"""The frames and the layout of a datagram, from their annotations and structs."""

from __future__ import annotations

import inspect
from dataclasses import fields

from ringcast.core.wire import frames, layout
from ringcast.core.wire.fields import ITEMS_MAX, TEXT_MAX
from ringcast.core.wire.frames import RUNS, Frame
from ringcast.explain import strings_under_fields
from tools.reference.text import NOTE, cell, first_paragraph, table

LIMITS = ("FRAMES_MAX", "EMPTY_MAX", "RANGES_MAX", "SEQNO_MAX", "VIEW_NUMBER_MAX")

HEAD = f"""\
# Frames and the wire format

{NOTE}The number of this format is {layout.VERSION}; [versions](../versions.md) says
which members may mix.

```
{(inspect.getdoc(layout) or "").partition(":" + chr(10) + chr(10))[2].partition(chr(10) * 2)[0]}
```

All numbers are big-endian. The magic is `{layout.MAGIC.decode()}`. The head has
{layout.HEADER_SIZE} bytes, the head of a frame {layout.FRAME_SIZE}. The group is BLAKE2b of its
name, in 8 bytes; target 0 is every receiver. Flag {layout.FLAG_FULL_CHECKSUM} says that the
checksum covers the payloads as well, flag {layout.FLAG_SEALED} that the datagram is sealed
([security](../security.md)), flag {layout.FLAG_PACKED} that
it holds a part of a *packed* run.

A datagram of a packed run has no frames and no target: it is for every receiver, and its source is
the origin. Its {layout.PACKED_AT} bytes of head describe the whole run; the last of them say,
twice, where its bytes belong in the messages of the run, one after the other.

```
    magic 2 | version 1 | flags 1 | group 8 | source 8 | crc32 4
    view number 8 | count 4 | size 4 | flags of the run 1 | view coordinator 8
    start 8 | sent_at 8 | first 8 | low 8 | position 4, twice | bytes
```

## How a field is written

| annotation | bytes |
| --- | --- |
| `int`, `Address` | 8 |
| `str`, `bytes` | a length of 4 and as many; a text has at most {TEXT_MAX} |
| `ViewId` | 16: number, coordinator |
| `RangeSet` | a count of 4, and 16 per range: first, last |
| `tuple[X, …]` | a count of 4, and the items; at most {ITEMS_MAX:,} in one datagram |
| `View`, and other records | their fields, one after the other |
"""


def page() -> str:
    """docs/reference/frames.md."""
    lines = [HEAD, "## Limits", ""]
    rows = [(f"`{name}`", f"{getattr(layout, name):,}") for name in LIMITS]
    lines += table(("limit", "value"), rows)
    lines += [
        "## Frames",
        "",
        "A datagram with an unknown code, or with a field out of bounds, is counted and dropped.",
        "",
    ]
    found = [kind for kind in vars(frames).values() if _is_frame(kind)]
    for kind in sorted(found, key=lambda kind: kind.code):
        lines += _frame(kind)
    return "\n".join(lines).rstrip() + "\n"


def _is_frame(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Frame) and hasattr(kind, "code")


def _frame(kind: type[Frame]) -> list[str]:
    lines = [f"### {kind.kind}", "", f"Code {kind.code}. {first_paragraph(kind)}", ""]
    if kind in RUNS:
        stream = "view, start, origin" if kind is RUNS[0] else "conn"
        lines += [
            f"On the wire: {stream}, `sent_at`, `flags` (4), size (4), `first`, `low`, count (4).",
            f"A size of {layout.VARIED:,} means that sizes differ, and follow.",
            "The payloads stand behind all frames.",
            "",
        ]
    abouts = dict(strings_under_fields(kind))
    rows = [
        (f"`{field.name}`", f"`{cell(str(field.type))}`", cell(abouts.get(field.name, "")))
        for field in fields(kind)  # type: ignore[arg-type]
    ]
    return lines + table(("field", "type", "meaning"), rows)
