"""The arguments that a refused member lacks: what `difference` says, as a command takes it."""

from __future__ import annotations

import re

MISSING = re.compile(r"the group has (\w+)(?:\(([\w.=,+-]*)\))?, and this member does not")
SURPLUS = re.compile(r"this member has (\w+)(?:\([^)]*\))?, and the group does not")
OTHER = re.compile(r"the group has (\w+)(?:\(([\w.=,+-]*)\))?, and this member has (\w+)")


def with_remedy(sentence: str) -> str:
    """The sentence of a failed join, and behind it the arguments that would have been right.

    A refusal comes from another process: only names and plain values become arguments.
    """
    found: list[str] = []
    for name, settings in MISSING.findall(sentence):
        found += _added(name, settings)
    for theirs, settings, own in OTHER.findall(sentence):
        pairs = settings.split(",") if settings else []
        found += (
            [f"--set {own}.{pair}" for pair in pairs] if theirs == own else [f"--with {theirs}"]
        )
    remedies = [f"give {' '.join(found)}"] if found else []
    if surplus := SURPLUS.findall(sentence):
        remedies.append(f"leave out {', '.join(surplus)}")
    return "; ".join([sentence, " and ".join(remedies)]) if remedies else sentence


def _added(name: str, settings: str) -> list[str]:
    return [f"--with {name}.{pair}" for pair in settings.split(",") if pair] or [f"--with {name}"]
