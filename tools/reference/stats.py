"""What `stats()` has of each protocol, from the sentences under the fields of its snapshot."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import get_args, get_origin, get_type_hints

from ringcast import protocols
from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.explain import strings_under_fields
from ringcast.services.correlator import RequestCorrelator
from tools.reference.text import NOTE, cell, first_paragraph, table

HEAD = f"""\
# Figures of a member

{NOTE}`group.stats()` and `ringcast status --json` have a mapping per role of the stack, with these
keys. Addresses are texts there. [The API](../api.md) lists what else `stats()` has.
"""


def page() -> str:
    """docs/reference/stats.md."""
    lines = [HEAD]
    for title, kind in _snapshots():
        lines += [f"## {title}", "", first_paragraph(kind), ""]
        rows = [(f"`{name}`", cell(about)) for name, about in _fields(kind)]
        lines += table(("key", "meaning"), rows)
    return "\n".join(lines).rstrip() + "\n"


def _snapshots() -> Iterator[tuple[str, type[PartSnapshot]]]:
    """The snapshots of all parts, each with its role and its protocol."""
    yield "`services`", _snapshot_of(RequestCorrelator)
    env = Env(Peer(Address(1), "", ""), random.Random(1))
    for name in protocols.names():
        spec = protocols.named(name)
        if spec.__module__.startswith("ringcast.") and spec.role != "transport":
            kind = _snapshot_of(type(spec().build(env)))
            if kind is not PartSnapshot:
                yield f"`{spec.role}`: {name}", kind


def _snapshot_of(part: type[Part]) -> type[PartSnapshot]:
    """What a part's `snapshot` returns; PartSnapshot itself when it says nothing."""
    hint = get_type_hints(part.snapshot)["return"]
    return hint if isinstance(hint, type) else PartSnapshot


def _fields(kind: type[PartSnapshot]) -> Iterator[tuple[str, str]]:
    """The keys with their sentences; the fields of a window follow the window's own."""
    owners = [owner for owner in reversed(kind.__mro__) if issubclass(owner, PartSnapshot)]
    about = dict(item for owner in owners for item in strings_under_fields(owner))
    hints = get_type_hints(kind)
    for field in fields(kind):
        name, hint = field.name.removesuffix("_"), hints[field.name]
        yield name, about[field.name]
        by = f"{name}[address]" if get_origin(hint) is Mapping else name
        inner = get_args(hint)[-1] if get_args(hint) else hint
        if isinstance(inner, type) and issubclass(inner, PartSnapshot):
            yield from ((f"{by}.{key}", text) for key, text in _fields(inner))
