"""The checks of the audit: each reads a summary and yields how members have broken a guarantee.

A check of your own is one function in a module of yours:

    @audit_check(VIEWS, {"too-small": Cause("view-size", "installed a view with one member")},
                 {"view-size": "a view has two members or more"})
    def too_small(summary: Summary) -> Iterator[Violation]:
        for (member, view), part in summary.progress.items():
            if len(part.members) < 2:
                yield Violation("too-small", member, *view)

It takes part in every audit once its module is imported, or when an installed package names the
module under the entry points "ringcast.checks". An audit takes it along to the tasks of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from ringcast.errors import ConfigError
from ringcast.trace.judging.evidence import KINDS
from ringcast.trace.judging.summary import Summary
from ringcast.trace.schema import VIEW
from ringcast.trace.violations import CAUSES, GUARANTEES, Cause, Violation

ENTRY_POINTS = "ringcast.checks"
"""The group of entry points under which installed packages name modules with checks."""

VIEWS = "views"
"""For checks of which members installed which views."""
MESSAGES = "messages"
"""For checks of what was sent and delivered. They are given the messages of one sender, or of
several: each sender has to be judged by itself."""

T = TypeVar("T")
Check = Callable[[Summary], Iterator[Violation]]

_checks: dict[str, list[Check]] = {VIEWS: [], MESSAGES: []}


def audit_check(
    about: str,
    causes: Mapping[str, Cause] | None = None,
    guarantees: Mapping[str, str] | None = None,
) -> Callable[[Check], Check]:
    """Register a check about VIEWS or MESSAGES.

    causes: the ways to break a guarantee that only this check finds. guarantees: the sentences of
    those that only this check knows. Raises ConfigError for a name that has another meaning.
    """
    if about not in _checks:
        raise ConfigError(f'a check is about "{about}": give {" or ".join(_checks)}')
    _declare(GUARANTEES, guarantees or {})
    for name, cause in (causes or {}).items():
        if cause.guarantee not in GUARANTEES:
            raise ConfigError(
                f'the cause "{name}" breaks "{cause.guarantee}", which is not a guarantee: give'
                f" one of {', '.join(GUARANTEES)}, or declare it in `guarantees`"
            )
    _declare(CAUSES, causes or {})
    if about == VIEWS:
        KINDS.update(dict.fromkeys(causes or {}, (VIEW,)))

    def register(check: Check) -> Check:
        others = _checks[about]
        others[:] = [other for other in others if _name(other) != _name(check)]
        others.append(check)
        return check

    return register


def _declare(table: dict[str, T], new: Mapping[str, T]) -> None:
    for name, meaning in new.items():
        if table.setdefault(name, meaning) != meaning:
            raise ConfigError(f'"{name}" means "{table[name]}" already: choose another name')


def _name(check: Check) -> tuple[str, str]:
    return check.__module__, check.__qualname__


def _is_own(check: Check) -> bool:
    return check.__module__.startswith("ringcast.")


def checks(about: str) -> list[Check]:
    """The checks about VIEWS or MESSAGES, Ringcast's own first."""
    _load_installed()
    return _checks[about]


def checks_of_others() -> dict[str, list[Check]]:
    """The checks from outside of Ringcast, to be taken along to other processes."""
    return {about: [check for check in checks(about) if not _is_own(check)] for about in _checks}


def include(others: Mapping[str, Iterable[Check]]) -> None:
    """Register the checks that another process has taken along, and no others from outside of
    Ringcast: a worker of Spark may serve several audits, each with checks of its own."""
    for about, known in _checks.items():
        known[:] = [check for check in checks(about) if _is_own(check)]
        for check in others.get(about, ()):
            audit_check(about)(check)


@cache
def _load_installed() -> None:
    for point in entry_points(group=ENTRY_POINTS):
        point.load()
