"""A check of one's own takes part in every audit, and cannot change what others mean."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from ringcast.errors import ConfigError
from ringcast.trace.check import check
from ringcast.trace.judging import checks, evidence
from ringcast.trace.judging.checks import MESSAGES, VIEWS, audit_check
from ringcast.trace.judging.summary import Summary
from ringcast.trace.schema import Row
from ringcast.trace.violations import CAUSES, GUARANTEES, Cause, Violation

ALONE = Cause("view-size", "installed a view with one member")
SIZE = {"view-size": "a view has two members or more"}


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test registers in copies of the tables."""
    monkeypatch.setattr(checks, "_checks", {about: [*c] for about, c in checks._checks.items()})
    tables: tuple[dict[str, Any], ...] = (CAUSES, GUARANTEES, evidence.KINDS)
    before = [dict(table) for table in tables]
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)


def alone(summary: Summary) -> Iterator[Violation]:
    for (member, view), part in summary.progress.items():
        if len(part.members) < 2:
            yield Violation("alone", member, *view)


def views(*sizes: int) -> list[Row]:
    """Member 1 in views of these sizes."""
    return [
        Row(1, number, 1, None, "view", at=number, members=tuple(range(1, size + 1)))
        for number, size in enumerate(sizes, start=1)
    ]


def test_a_check_takes_part_with_its_own_guarantee_and_rows() -> None:
    assert check(views(2, 1, 3)) == []
    audit_check(VIEWS, {"alone": ALONE}, SIZE)(alone)
    (found,) = check(views(2, 1, 3))
    assert str(found) == "view-size: installed a view with one member (member 1, view 2@1)"
    assert [row.view for row in evidence.evidence(found, views(2, 1, 3))] == [2]


def test_a_check_that_is_registered_twice_tells_once() -> None:
    for _ in range(2):
        audit_check(VIEWS, {"alone": ALONE}, SIZE)(alone)
    assert len(check(views(1))) == 1


def test_a_check_about_messages_may_find_what_others_find() -> None:
    def long(summary: Summary) -> Iterator[Violation]:
        for (member, view, sender), reach in summary.delivered.items():
            if reach.last > 4:
                yield Violation("tail", member, *view, sender, None, 5, reach.last)

    audit_check(MESSAGES)(long)
    rows = [*views(1), Row(1, 1, 1, 1, "sent", 1, 6, at=2)]
    rows.append(Row(1, 1, 1, 1, "delivered", 1, 6, pos=0, at=3))
    assert check(rows) == [Violation("tail", 1, 1, 1, 1, None, 5, 6)]


def test_names_keep_their_meaning() -> None:
    with pytest.raises(ConfigError, match=r'"gap" means ".*" already: choose another name'):
        audit_check(VIEWS, guarantees={"gap": "something else"})
    with pytest.raises(ConfigError, match='"gap" means'):
        audit_check(VIEWS, {"gap": Cause("order", "something else")})


def test_a_cause_needs_a_guarantee_that_is_known() -> None:
    with pytest.raises(ConfigError, match='"alone" breaks "view-size", which is not a guarantee'):
        audit_check(VIEWS, {"alone": ALONE})
    with pytest.raises(ConfigError, match='about "view": give views or messages'):
        audit_check("view")


def test_installed_packages_bring_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "ringcast.trace.judging.summary", checks.ENTRY_POINTS)
    asked = list[str]()

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [point]

    monkeypatch.setattr(checks, "entry_points", entry_points)
    checks._load_installed.cache_clear()
    try:
        check(views(2))
        check(views(2))
    finally:
        checks._load_installed.cache_clear()
    assert asked == ["ringcast.checks"], "looked up once"


def test_another_process_gets_the_checks_of_others_only() -> None:
    assert checks.checks_of_others() == {VIEWS: [], MESSAGES: []}
    audit_check(VIEWS, {"alone": ALONE}, SIZE)(alone)
    taken = checks.checks_of_others()
    assert taken == {VIEWS: [alone], MESSAGES: []}
    checks._checks[VIEWS].remove(alone)
    checks.include(taken)
    assert len(check(views(1))) == 1


def test_a_process_that_serves_several_audits_has_the_checks_of_the_last_one() -> None:
    own = len(checks.checks(VIEWS))
    audit_check(VIEWS, {"alone": ALONE}, SIZE)(alone)
    taken = checks.checks_of_others()
    checks.include(taken)
    assert len(check(views(1))) == 1
    checks.include({VIEWS: [], MESSAGES: []})
    assert check(views(1)) == []
    assert len(checks.checks(VIEWS)) == own
