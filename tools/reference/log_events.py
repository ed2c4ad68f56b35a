"""The events in the log with their levels and facts, from the code that writes them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from ringcast.core.model import events
from ringcast.runtime.ops import logs
from tools.reference.text import NOTE, cell, first_paragraph, table

HEAD = f"""\
# Log events

{NOTE}Records of the logger `ringcast.group` have the attribute `ringcast`, a mapping with their
facts; `--log json` prints it. Every record has `event`, `group`, `member`, and `view` once there is
one. Other loggers below `ringcast` write sentences without an event: `ringcast.network` about
sockets and strangers, `ringcast.spark` about jobs. [Running groups](../operations.md#the-log) says
how to switch the log on.
"""

OTHERS = {
    "security": "The member starts to look for its group: whether that is open or closed.",
    "closed": "The member has left, or was closed; a warning when it did not leave in order.",
}
"""Events that are not of the group, and what they mean."""


def page() -> str:
    """docs/reference/log-events.md."""
    tree = ast.parse(inspect.getsource(logs.EventLogger))
    rows = sorted(set(_rows(tree)))
    lines = [HEAD, *table(("event", "level", "when", "facts"), rows)]
    return "\n".join(lines).rstrip() + "\n"


def _rows(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    for part in ast.walk(tree):
        if isinstance(part, ast.match_case) and isinstance(part.pattern, ast.MatchClass):
            about = first_paragraph(getattr(events, ast.unparse(part.pattern.cls)))
            yield from _records(part, about)
        elif isinstance(part, ast.FunctionDef) and part.name in ("begin", "end"):
            yield from _records(part, "")


def _records(part: ast.AST, about: str) -> Iterator[tuple[str, ...]]:
    for call in ast.walk(part):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("self._warn", "self._log"):
            event = re.findall(r"'([a-z_]+)'", ast.unparse(call))[0]
            yield (
                f"`{event}`",
                _level(call, part),
                cell(about or OTHERS[event]),
                ", ".join(f"`{fact}`" for fact in _facts(call, part)),
            )


def _level(call: ast.Call, part: ast.AST) -> str:
    if ast.unparse(call.func) == "self._warn":
        return "WARNING"
    return " or ".join(sorted(set(re.findall(r"logging\.([A-Z]+)", ast.unparse(part)))))


def _facts(call: ast.Call, part: ast.AST) -> list[str]:
    """Facts given by name, and the keys of dictionaries in the same place."""
    facts = [keyword.arg for keyword in call.keywords if keyword.arg]
    if ast.unparse(call.func) == "self._log":
        for node in ast.walk(part):
            if isinstance(node, ast.Dict):
                keys = (key.value for key in node.keys if isinstance(key, ast.Constant))
                facts += [key for key in keys if isinstance(key, str)]
    return list(dict.fromkeys(facts))
