"""What an examination finds: fine, doubtful or wrong, in a sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, or may work; but not as well as it could."""
    PROBLEM = "problem"
    """No group can form like that."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    verdict: Verdict
    text: str


def ok(topic: str, text: str) -> Finding:
    """Nothing to do."""
    return Finding(topic, Verdict.OK, text)


def warning(topic: str, text: str) -> Finding:
    """Something to look at."""
    return Finding(topic, Verdict.WARNING, text)


def problem(topic: str, text: str) -> Finding:
    """Something to do."""
    return Finding(topic, Verdict.PROBLEM, text)
