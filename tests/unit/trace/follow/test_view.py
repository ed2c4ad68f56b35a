"""A history that is followed piece by piece: it is found what the checks find in the whole."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from ringcast.trace.check import check
from ringcast.trace.follow.audit_row import LATE, OPEN, VIEW, VIOLATION, AuditRow
from ringcast.trace.follow.member import MemberTrack
from ringcast.trace.follow.part import MemberPart
from ringcast.trace.follow.view import KEPT_MS, ViewTrack
from ringcast.trace.judging.summary import ViewKey
from ringcast.trace.rules import Rules
from ringcast.trace.schema import AGREED, CLOSED, DELIVERED, SENT, Row
from ringcast.trace.schema import VIEW as INSTALL
from tests.unit.trace.histories import good_history
from tests.unit.trace.simulations import ordered_history, reordered, simulated_history, whole_seeds
from tests.unit.trace.spoils import SPOILS, spoil
from tests.unit.trace.test_check import contradicted

GRACE = 1_000


class Follower:
    """Follows a trace without Spark; all state goes through JSON after each piece."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules, self.now = rules or Rules(), 0
        self.members: dict[int, str] = {}
        self.views: dict[ViewKey, str] = {}
        self.told: list[AuditRow] = []
        self.opened: list[ViewKey] = []
        """The views of which it was told that they began."""

    def read(self, rows: Iterable[Row], number: int | None = None) -> list[AuditRow]:
        """One piece of the trace, of each member its file of this number; what is told at once."""
        parts = defaultdict[int, dict[ViewKey, MemberPart]](dict)
        for row in rows:
            view = row.view, row.view_by
            part = parts[row.member].setdefault(view, MemberPart(row.member, view))
            part.add(row, self.rules.skew_us)
        heard = defaultdict[ViewKey, list[tuple[int, dict[str, object]]]](list)
        for member, found in parts.items():
            for part in found.values():
                part.tidy()
                part.files = [] if number is None else [(number, number)]
            state = self.members.get(member)
            track = MemberTrack.of(member, json.loads(state)) if state else MemberTrack(member)
            for view, message in track.update(found.values()):
                heard[view].append((member, json.loads(json.dumps(message))))
            self.members[member] = json.dumps(track.plain())
        told: list[AuditRow] = []
        for view in {*heard, *self.views}:
            track_of_view = ViewTrack(view, self.rules, GRACE)
            if view in self.views:
                track_of_view.load(json.loads(self.views[view]))
            if view in heard:
                told += track_of_view.hear(heard[view], self.now)
            told += track_of_view.expire(self.now)
            self.views[view] = json.dumps(track_of_view.plain())
            if track_of_view.is_forgotten:
                del self.views[view]
        self.opened += [(row.view, row.view_by) for row in told if row.type == OPEN]
        told = [row for row in told if row.type != OPEN]
        self.told += told
        return told

    def wait(self, milliseconds: int) -> list[AuditRow]:
        self.now += milliseconds
        return self.read(())


def pieces(rows: Sequence[Row], count: int) -> list[list[Row]]:
    """The history in pieces, as members write it: each one's rows by view, in its order."""
    cuts: list[list[Row]] = [[] for _ in range(count)]
    by_member = defaultdict[int, list[Row]](list)
    for row in rows:
        by_member[row.member].append(row)
    for own in by_member.values():
        own.sort(key=lambda row: (row.view, row.kind != INSTALL, row.kind == CLOSED))
        for place, row in enumerate(own):
            cuts[place * count // len(own)].append(row)
    return cuts


def follow(rows: Sequence[Row], count: int, rules: Rules | None = None) -> Follower:
    follower = Follower(rules)
    for piece in pieces(rows, count):
        follower.read(piece)
    follower.wait(GRACE)
    follower.wait(KEPT_MS)
    return follower


def causes(told: Iterable[AuditRow]) -> set[tuple[object, ...]]:
    return {(row.cause, row.member, row.view, row.sender) for row in told if row.type == VIOLATION}


@pytest.mark.parametrize("seed", range(30))
def test_good_histories_are_clean_and_every_view_is_told_once(seed: int) -> None:
    rows = good_history(seed)
    follower = follow(rows, 1 + seed % 5)
    assert causes(follower.told) == set()
    views = [(row.view, row.view_by) for row in follower.told if row.type == VIEW]
    assert sorted(views) == sorted({(row.view, row.view_by) for row in rows})
    assert sorted(follower.opened) == sorted(views)
    delivered = sum(row.delivered_messages or 0 for row in follower.told)
    assert delivered == sum(row.count for row in rows if row.kind == DELIVERED)


@pytest.mark.parametrize("seed", whole_seeds(6))
def test_what_a_world_did_is_clean(seed: int) -> None:
    follower = follow(simulated_history(seed), 4)
    assert causes(follower.told) == set()
    assert any(row.latency_p99 for row in follower.told)


@pytest.mark.parametrize("way", sorted(SPOILS))
@pytest.mark.parametrize("seed", range(6))
def test_what_the_checks_find_is_found(way: str, seed: int) -> None:
    spoilt = spoil(good_history(seed), random.Random(seed), way)
    if spoilt is None:
        pytest.skip("this history has no place for it")
    follower = follow(spoilt.rows, 1 + seed % 4)
    expected = {(v.cause, v.member, v.view, v.sender) for v in check(spoilt.rows)}
    if way == "other view":  # Of a later view: what was sent there is not known yet.
        assert {found[1:] for found in causes(follower.told)} == {found[1:] for found in expected}
    else:
        assert causes(follower.told) == expected


@pytest.mark.parametrize("seed", range(6))
def test_another_order_is_found(seed: int) -> None:
    rows = ordered_history(1 + seed // 2)
    rules = Rules(ordered=True)
    assert causes(follow(rows, 3, rules).told) == set()
    _, spoilt = reordered(rows, random.Random(seed))
    expected = {(v.cause, v.member, v.view, v.sender) for v in check(spoilt, ordered=True)}
    assert causes(follow(spoilt, 3, rules).told) == expected
    assert expected


@pytest.mark.parametrize("way", [None, "gap", "tail", "contents"])
@pytest.mark.parametrize("seed", range(20))
def test_files_may_be_read_in_any_order(seed: int, way: str | None) -> None:
    """As a program brings them that copies them; no view is judged while one is missing."""
    rows = good_history(seed)
    if way is not None:
        spoilt = spoil(rows, random.Random(seed), way)
        if spoilt is None:
            pytest.skip("this history has no place for it")
        rows = spoilt.rows
    files = [*enumerate(pieces(rows, 4))]
    random.Random(seed).shuffle(files)
    follower = Follower()
    for number, piece in files:
        follower.read(piece, number)
    follower.wait(GRACE)
    assert not [row for row in follower.told if row.type == LATE]
    assert causes(follower.told) == {(v.cause, v.member, v.view, v.sender) for v in check(rows)}


@pytest.mark.parametrize("seed", range(12))
def test_of_rows_that_contradict_each_other_the_same_one_counts(seed: int) -> None:
    """The same as in the whole trace."""
    rows = contradicted(seed)
    expected = {(v.cause, v.member, v.view, v.sender) for v in check(rows, majority=True)}
    random.Random(seed).shuffle(rows)
    assert causes(follow(rows, 2, Rules(majority=True)).told) == expected


def test_names_that_are_null_stop_nothing() -> None:
    rows = [Row(1, 1, 1, None, INSTALL, at=1, members=(1,)) for _ in range(2)]
    names: list[tuple[Any, ...]] = [(None,), ("ann",)]
    told = follow([row._replace(names=n) for row, n in zip(rows, names, strict=True)], 1).told
    assert {row.cause for row in told if row.type == VIOLATION} <= {"reinstalled"}


def test_a_file_that_never_comes_holds_a_view_up_for_the_grace_only() -> None:
    rows = [Row(1, view, 1, None, INSTALL, at=view, members=(1,)) for view in (1, 2)]
    follower = Follower()
    follower.read(rows[:1], 0)
    assert follower.read(rows[1:], 2) == []
    assert [told.view for told in follower.wait(GRACE)] == [1]
    assert follower.read([Row(1, 2, 1, None, CLOSED, at=3)], 1) != [], "no file is missing now"


def test_a_member_is_followed_on_from_the_state_of_an_earlier_version() -> None:
    """That state has the last view only, and no numbers of files."""
    track = MemberTrack.of(1, json.loads("[[1, 1], [[1, 5], []], [null, []]]"))
    part = MemberPart(1, (2, 1))
    part.add(Row(1, 2, 1, None, INSTALL, at=9, members=(1,)))
    part.files = [(7, 7)]
    told = [(view, key) for view, message in track.update([part]) for key in message]
    assert told == [((2, 1), "part"), ((1, 1), "passed"), ((2, 1), "before")]
    assert not MemberTrack.of(1, json.loads(json.dumps(track.plain()))).is_over


def test_late_rows_are_told() -> None:
    rows = good_history(3)
    follower = follow(rows, 1)
    late = next(row for row in rows if row.kind == DELIVERED)
    follower = Follower()
    follower.read(row for row in rows if row is not late)
    follower.wait(GRACE)
    (told,) = follower.read([late])
    assert (told.type, told.member, told.view, told.rows) == (LATE, late.member, late.view, 1)
    follower.wait(KEPT_MS)
    follower.wait(KEPT_MS)
    assert follower.views == {}


def test_a_view_is_judged_when_all_have_gone_on_or_the_grace_is_over() -> None:
    """Of three members a and b go on; c is heard of no more."""
    a, b, c = 1, 2, 3

    def install(member: int, view: int, *members: int) -> Row:
        at = follower.now * 1_000
        return Row(member, view, a, None, INSTALL, at=at, members=members)

    follower = Follower()
    follower.read([install(member, 1, a, b, c) for member in (a, b, c)])
    assert follower.wait(10 * GRACE) == []
    assert follower.read([install(a, 2, a, b)]) == []
    assert follower.wait(GRACE - 1) == []
    follower.read([install(b, 2, a, b)])
    (told,) = follower.wait(1)
    assert (told.type, told.view, told.members, told.unfinished) == (VIEW, 1, 3, 1)
    (closed,) = follower.read([Row(m, 2, a, None, CLOSED, at=3) for m in (a, b)])
    assert (closed.type, closed.view, closed.unfinished) == (VIEW, 2, 0)


def test_the_grace_began_when_the_first_member_went_on() -> None:
    """Its file was read late: a third of the grace at most is over by then."""
    a, b = 1, 2
    follower = Follower()
    follower.now = 100 * GRACE
    follower.read([Row(m, 1, a, None, INSTALL, at=0, members=(a, b)) for m in (a, b)])
    follower.read([Row(a, 2, a, None, INSTALL, at=1, members=(a,))])
    assert follower.wait(GRACE - GRACE // 3 - 1) == []
    assert [told.view for told in follower.wait(1)] == [1]


def test_the_state_of_a_long_view_stays_small() -> None:
    """A hundred thousand messages, purged as they go, take no more room than a few hundred."""
    a, b = 1, 2
    follower = Follower()
    follower.read([Row(m, 1, a, None, INSTALL, at=0, members=(a, b)) for m in (a, b)])
    sizes = []
    for start in range(0, 100_000, 1_000):
        at = start * 10
        rows = [
            Row(a, 1, a, a, "sent", start + 1, 1_000, None, 10, 5, at, at),
            *(
                Row(m, 1, a, a, DELIVERED, start + 1, 1_000, start, 10, 5, at, at + 5)
                for m in (a, b)
            ),
            Row(a, 1, a, a, "purged", start + 1, 1_000, at=at + 9)._replace(
                low=start + 1_000, delivered=start + 1_000, high=start + 1_000
            ),
        ]
        assert follower.read(rows) == []
        sizes.append(sum(map(len, follower.views.values())))
    assert max(sizes[10:]) < 2 * sizes[10]
    early = Row(b, 1, a, a, DELIVERED, 100_001, 4_096, 100_000, 10, 5, 2_000_000, 2_000_009)
    late = Row(a, 1, a, a, "purged", 100_001, 4_096, at=2_000_001)
    sent = Row(a, 1, a, a, "sent", 100_001, 4_096, None, 10, 5, 2_000_000, 2_000_000)
    follower.read([sent, early, early._replace(member=a, at=2_000_000)])
    follower.read([late._replace(low=104_096, delivered=104_096, high=104_096)])
    told = follower.read([Row(m, 1, a, None, CLOSED, at=3_000_000) for m in (a, b)])
    assert [(row.cause, row.peer) for row in told if row.type == VIOLATION] == [
        ("purged-before", b)
    ]


@pytest.mark.parametrize("says", [True, False])
def test_a_send_without_a_majority_is_told_when_the_view_is_over(says: bool) -> None:
    rows = [Row(m, 1, 1, None, INSTALL, at=1, members=(1, 2)) for m in (1, 2)]
    if says:
        rows += [Row(m, 1, 1, None, AGREED, at=2, members=()) for m in (1, 2)]
    rows.append(Row(1, 1, 1, 1, SENT, 1, 5, at=3))
    rows += [Row(m, 1, 1, 1, DELIVERED, 1, 5, pos=0, at=4) for m in (1, 2)]
    rows += [Row(m, 1, 1, None, CLOSED, at=5) for m in (1, 2)]
    follower = Follower(Rules(majority=True))
    for piece in pieces(rows, 3):
        follower.read(piece)
    follower.wait(10 * GRACE)
    causes = [row.cause for row in follower.told if row.type == VIOLATION]
    assert causes == ([] if says else ["unagreed"])
