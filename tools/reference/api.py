"""The public names with their docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from itertools import pairwise
from types import FunctionType, ModuleType

import ringcast
from ringcast import journal, presets, sim, spark, sync
from ringcast.trace import live
from tools.reference.text import NOTE, cell, first_paragraph, signature, table

HEAD = f"""\
# Python names

{NOTE}[The API](../api.md) explains how to use them. Protocols and their
settings have [a page of their own](settings.md).
"""

PUBLIC: dict[str, tuple[ModuleType, tuple[str, ...]]] = {
    "ringcast": (ringcast, tuple(sorted(ringcast.__all__))),
    "ringcast.sync": (sync, ("join", "Group", "rows")),
    "ringcast.presets": (presets, tuple(presets.PRESETS)),
    "ringcast.sim": (sim, ("World",)),
    "ringcast.journal": (journal, tuple(sorted(journal.__all__))),
    "ringcast.trace.live": (live, ("LiveTrace",)),
    "ringcast.spark": (spark, tuple(sorted(spark.__all__))),
}
CONSTRUCTED = frozenset(
    ("Journal", "JournalWriter", "LiveTrace", "RingBuffer", "RowDeduplicator", "World")
)
"""Classes that users make objects of; of others they are given some."""
INTERNAL = frozenset(("on_fork",))
"""What Ringcast itself calls."""


def page() -> str:
    """docs/reference/python.md."""
    lines = [HEAD]
    for title, (module, names) in PUBLIC.items():
        lines += [f"## {title}", ""]
        for name in names:
            thing = getattr(module, name)
            if isinstance(thing, type):
                lines += _class(name, thing)
            elif isinstance(thing, FunctionType):
                lines += [f"### {name}", "", f"```python\n{name}{signature(thing)}\n```", ""]
                lines += [first_paragraph(thing), ""]
    return "\n".join(lines).rstrip() + "\n"


def _class(name: str, kind: type) -> list[str]:
    about = first_paragraph(kind)
    lines = [f"### {name}", ""]
    if is_dataclass(kind) or hasattr(kind, "_fields") or name in CONSTRUCTED:
        lines += [f"```python\n{name}{signature(kind)}\n```", ""]
    if _is_written(kind, about):
        lines += [about, ""]
    return lines + table(("member", "what it does"), _members(kind))


def _is_written(kind: type, about: str) -> bool:
    """Whether a class has a docstring, and not the one that dataclasses make of the arguments."""
    return not about.startswith(f"{kind.__name__}(")


def _members(kind: type) -> Iterator[tuple[str, str]]:
    seen = set(INTERNAL)
    owners = [owner for owner in kind.__mro__ if owner.__module__.startswith("ringcast")]
    for owner in owners:
        for name, about in _attributes(owner):
            if name not in seen:
                seen.add(name)
                yield f"`{name}`", cell(about)
    for owner in owners:
        for name, member in vars(owner).items():
            thing = inspect.unwrap(getattr(member, "__func__", member))
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(member, property):
                yield f"`{name}`", cell(first_paragraph(member))
            elif isinstance(thing, FunctionType):
                yield f"`{cell(name + signature(thing))}`", cell(first_paragraph(thing))


def _attributes(owner: type) -> Iterator[tuple[str, str]]:
    """The public attributes that have a sentence under them, in the class or in its `__init__`."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(definition, ast.ClassDef)
    for body in (definition.body, *_constructors(definition)):
        for statement, below in pairwise(body):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    name = _assigned(statement)
                    if name and not name.startswith("_"):
                        yield name, text


def _constructors(definition: ast.ClassDef) -> Iterator[list[ast.stmt]]:
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            yield statement.body


def _assigned(statement: ast.stmt) -> str:
    """The name, or the attribute of self, that a statement gives a value or a type."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case (
            ast.AnnAssign(target=ast.Attribute(attr=name))
            | ast.Assign(targets=[ast.Attribute(attr=name)])
        ):
            return name
    return ""
