"""What an examination finds: fine, doubtful or wrong, in a sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, or may work; but not as well as it could."""
    PROBLEM = "problem"
    """No group can form like that."""


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that was looked at."""

    topic: str
    verdict: Severity
    text: str


def ok(topic: str, text: str) -> DoctorFinding:
    """Nothing to do."""
    return DoctorFinding(topic, Severity.OK, text)


def warning(topic: str, text: str) -> DoctorFinding:
    """Something to look at."""
    return DoctorFinding(topic, Severity.WARNING, text)


def problem(topic: str, text: str) -> DoctorFinding:
    """Something to do."""
    return DoctorFinding(topic, Severity.PROBLEM, text)
