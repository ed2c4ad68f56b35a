"""Ways to spoil a good history: each takes its rows and breaks one guarantee, by name."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from ringcast.trace.judging.history import History
from ringcast.trace.judging.summary import Group, ReceiverProgress, Summary, ViewKey
from ringcast.trace.schema import Row
from tests.unit.trace.histories import digest_of

Spoil = Callable[[list[Row], random.Random], list[Row] | None]
"""Gives the spoilt rows, or None when the history has no place for this."""


class Spoilt(NamedTuple):
    """A spoilt history and what is wrong with it."""

    guarantee: str
    rows: list[Row]


def spoil(rows: list[Row], rng: random.Random, name: str | None = None) -> Spoilt | None:
    """Spoil a history in the way of this name, or in any."""
    name = name or rng.choice(sorted(SPOILS))
    guarantee, way = SPOILS[name]
    spoilt = way(list(rows), rng)
    return None if spoilt is None else Spoilt(guarantee, spoilt)


def gap(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A message is never delivered, and the next ones are."""
    return _edit(rows, rng, lambda r, i: _count_again(r[:i] + r[i + 1 :]))


def duplicate(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A message is delivered again, right after itself."""
    return _edit(rows, rng, lambda r, i: _count_again(r[: i + 1] + r[i:]))


def swap(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """Two messages are delivered in the wrong order."""
    return _edit(rows, rng, lambda r, i: _count_again([*r[:i], r[i + 1], r[i], *r[i + 2 :]]))


def lost_row(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A row is missing from the trace, though its message was delivered."""
    return _edit(rows, rng, lambda r, i: r[:i] + r[i + 1 :])


def uncounted(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A row does not say where the member was in its count."""
    return _edit(rows, rng, lambda r, i: [*r[:i], r[i]._replace(pos=None), *r[i + 1 :]])


def head(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member begins with a later message than the sender did."""
    return _edit(rows, rng, lambda r, i: _count_again(r[i:]), vouched=True)


def tail(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member that saw the end of the view lacks the last messages."""
    return _edit(rows, rng, lambda r, i: r[: i + 1], owing=True)


def other_view(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A message is delivered in a later or an earlier view than it was sent in."""
    summary = History(rows).summary
    for member, view, sender in _groups(rows, rng):
        places = [v for (m, v) in summary.progress if m == member and v != view]
        known = [v for v in places if sender in summary.progress[member, v].members]
        if known and _vouched(summary, (member, view, sender)):
            number, by = rng.choice(sorted(known))
            return _edited(rows, (member, view, sender), rng, lambda r, i: [
                *r[:i], r[i]._replace(view=number, view_by=by), *r[i + 1 :],  # noqa: B023
            ])  # fmt: skip
    return None


def stranger(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A message is delivered from a process that is not in the view."""
    return _edit(rows, rng, lambda r, i: [*r[:i], r[i]._replace(sender=1, pos=0), *r[i:]])


def early_purge(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A sender forgets messages before others have delivered them."""
    begins = {(r.member, r.view, r.view_by): r.at for r in rows if r.kind == "view"}
    deliveries = defaultdict[tuple[ViewKey, int], list[Row]](list)
    for row in rows:
        if (group := _group_of(row)) is not None:
            deliveries[group[1:]].append(row)
    purges = [
        i
        for i, row in enumerate(rows)
        if row.kind == "purged"
        and _delivered_at(deliveries[(row.view, row.view_by), row.member], row)
        > begins[row.member, row.view, row.view_by]
    ]
    if not purges:
        return None
    chosen = rng.choice(purges)
    row = rows[chosen]
    rows[chosen] = row._replace(at=begins[row.member, row.view, row.view_by])
    return rows


def _delivered_at(deliveries: list[Row], purge: Row) -> int:
    """When the last of those that delivered the last message of a purge did so.

    deliveries: of the sender that purges, in its view."""
    low = purge.low or 0
    times = [row.at for row in deliveries if 0 <= low - (row.seqno or 0) < row.count]
    return max(times, default=0)


def wild_purge(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A sender forgets messages that nobody will ever deliver."""
    progress = History(rows).summary.progress
    purges = [
        i
        for i, row in enumerate(rows)
        if row.kind == "purged" and not progress[row.member, (row.view, row.view_by)].crashed
    ]
    if not purges:
        return None
    chosen = rng.choice(purges)
    rows[chosen] = rows[chosen]._replace(low=(rows[chosen].low or 0) + 2**40)
    return rows


def wild_ack(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A sender hears of deliveries that never were."""
    summary = History(rows).summary
    for member, view, sender in _groups(rows, rng):
        if not summary.progress[member, view].crashed and (sender, view) in summary.progress:
            last = summary.delivered[member, view, sender].last
            ack = Row(sender, *view, sender, "acked", seqno=last + 1, peer=member, at=rows[0].at)
            return [*rows, ack]
    return None


def number_again(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A sender begins anew with its numbers, in the middle of its life."""
    summary = History(rows).summary
    sent = summary.sent
    places = sorted(
        (sender, view, sent[view, sender].first - reach.last)
        for view, sender in sent
        for (earlier, who), reach in sent.items()
        if who == sender and earlier < view and summary.is_complete(view, sender)
    )
    if not places:
        return None
    sender, view, ahead = rng.choice(places)
    return [_renumbered(row, ahead) if _is_of(row, view, sender) else row for row in rows]


def _renumbered(row: Row, less: int) -> Row:
    seqno, low, delivered, high = (
        None if number is None else number - less
        for number in (row.seqno, row.low, row.delivered, row.high)
    )
    return row._replace(seqno=seqno, low=low, delivered=delivered, high=high)


def _is_of(row: Row, view: tuple[int, int], sender: int) -> bool:
    return (row.view, row.view_by) == view and row.sender == sender


def contents(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member delivers a message with other contents than were sent."""
    summary = History(rows).summary
    for member, view, sender in _groups(rows, rng):
        group = [row for row in rows if _group_of(row) == (member, view, sender)]
        reach = summary.delivered[member, view, sender]
        whole = all(row.digest is not None for row in group)
        if whole and summary.sent.get((view, sender)) == reach:
            victim = rng.choice(group)
            return [r._replace(digest=1) if r is victim else r for r in rows]
    return None


def survivors(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """Of those who went on together, one lacks the last messages of a sender that crashed."""
    return _edit(rows, rng, lambda r, i: r[: i + 1], orphaned=True)


def membership(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member installs a view with other members than the rest."""
    views = [i for i, r in enumerate(rows) if r.kind == "view" and len(r.members or ()) > 2]
    views = [i for i in views if rows[i].member != rows[i].view_by]
    if not views:
        return None
    chosen = rng.choice(views)
    rows[chosen] = rows[chosen]._replace(members=(*(rows[chosen].members or ()), 77))
    return rows


def reinstall(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member installs a view, and then again, with other members."""
    row = rng.choice([row for row in rows if row.kind == "view"])
    return [*rows, row._replace(members=(*(row.members or ()), 77), at=row.at + 1)]


def marks(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A window delivers more than it has."""
    samples = [i for i, row in enumerate(rows) if row.kind == "window"]
    if not samples:
        return None
    chosen = rng.choice(samples)
    rows[chosen] = rows[chosen]._replace(delivered=(rows[chosen].high or 0) + 1)
    return rows


def own_skip(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A member gives up a message that it sent itself."""
    own = [i for i, r in enumerate(rows) if r.kind == "delivered" and r.member == r.sender]
    if not own:
        return None
    chosen = rng.choice(own)
    rows[chosen] = rows[chosen]._replace(kind="skipped", digest=None)
    return rows


def lost_sending(rows: list[Row], rng: random.Random) -> list[Row] | None:
    """A row is missing from what a sender wrote down."""
    sendings = defaultdict[tuple[int, int, int], list[Row]](list)
    for row in rows:
        if row.kind == "sent":
            sendings[row.member, row.view, row.view_by].append(row)
    long = [group for group in sendings.values() if len(group) > 2]
    victim = rng.choice(rng.choice(long)[1:-1]) if long else None
    return [row for row in rows if row is not victim] if victim else None


SPOILS: dict[str, tuple[str, Spoil]] = {
    "gap": ("gap", gap),
    "duplicate": ("duplicate", duplicate),
    "swap": ("order", swap),
    "lost row": ("lost-trace-row", lost_row),
    "uncounted": ("lost-trace-row", uncounted),
    "lost sending": ("lost-trace-row", lost_sending),
    "head": ("missing-head", head),
    "tail": ("missing-tail", tail),
    "other view": ("wrong-view", other_view),
    "stranger": ("wrong-view", stranger),
    "early purge": ("early-purge", early_purge),
    "wild purge": ("early-purge", wild_purge),
    "wild ack": ("early-purge", wild_ack),
    "number again": ("duplicate", number_again),
    "reinstall": ("disagreement", reinstall),
    "contents": ("disagreement", contents),
    "survivors": ("disagreement", survivors),
    "membership": ("disagreement", membership),
    "marks": ("window-bound", marks),
    "own skip": ("skipped", own_skip),
}
"""Every way by its name, with the guarantee that it breaks."""

UNSEEN = ("marks", "wild purge", "wild ack", "uncounted")
"""What the simulator's own checks do not find in a history: what they see in the windows
themselves, of which a history has only samples, and what is wrong with the rows alone."""


Edit = Callable[[list[Row], int], list[Row]]


def _edit(
    rows: list[Row],
    rng: random.Random,
    edit: Edit,
    *,
    owing: bool = False,
    orphaned: bool = False,
    vouched: bool = False,
) -> list[Row] | None:
    """Edit a random group of deliveries, given message by message and a place inside it."""
    summary = History(rows).summary
    for group in _groups(rows, rng):
        member, view, sender = group
        ours, theirs = summary.progress[member, view], summary.progress.get((sender, view))
        if owing and not (theirs and _owes(ours, theirs) and (view, sender) in summary.sent):
            continue
        if orphaned and not _orphaned(summary, group):
            continue
        if vouched and not _vouched(summary, group):
            continue
        return _edited(rows, group, rng, edit)
    return None


def _vouched(summary: Summary, group: Group) -> bool:
    """Tell whether the sender's own rows cover what was delivered: not if it crashed since."""
    sent, extent = summary.sent.get(group[1:]), summary.delivered[group]
    return sent is not None and sent.first <= extent.first and extent.last <= sent.last


def _owes(ours: ReceiverProgress, theirs: ReceiverProgress) -> bool:
    if ours.next is None:
        return ours.closed and not theirs.crashed
    return ours.next == theirs.next


def _orphaned(summary: Summary, group: Group) -> bool:
    """Tell whether others went on with this member, as far as it in the messages of a lost one."""
    member, view, sender = group
    ours = summary.progress[member, view]
    theirs = summary.progress.get((sender, view))
    along = [m for (m, v), part in summary.progress.items() if v == view and part.next == ours.next]
    lost = theirs is None or theirs.next != ours.next
    return ours.next is not None and lost and len(along) > 1


def _edited(rows: list[Row], group: Group, rng: random.Random, edit: Edit) -> list[Row]:
    inside = [row for row in rows if _group_of(row) == group]
    single = sorted((one for row in inside for one in _singles(row)), key=lambda r: r.pos or 0)
    place = rng.randint(1, len(single) - 3)
    outside = [row for row in rows if _group_of(row) != group]
    return outside + edit(single, place)


def _groups(rows: list[Row], rng: random.Random) -> list[Group]:
    """The groups with enough messages to spoil, in a random order."""
    summary = History(rows).summary
    groups = [g for g, extent in summary.delivered.items() if extent.last - extent.first >= 4]
    rng.shuffle(groups)
    return groups


def _group_of(row: Row) -> Group | None:
    if row.kind not in ("delivered", "skipped") or row.sender is None:
        return None
    return row.member, (row.view, row.view_by), row.sender


def _singles(row: Row) -> list[Row]:
    """A run, cut into its messages."""
    first, pos, sender = row.seqno or 0, row.pos or 0, row.sender or 0
    return [
        row._replace(
            seqno=first + index,
            count=1,
            pos=pos + index,
            nbytes=100,
            digest=None if row.digest is None else digest_of(sender, first + index),
        )
        for index in range(row.count)
    ]


def _count_again(rows: list[Row]) -> list[Row]:
    """What the member itself would have counted."""
    return [row._replace(pos=index) for index, row in enumerate(rows)]


def scramble(rows: list[Row], rng: random.Random) -> list[Row]:
    """Change, remove or double one row at random: what may come of it is not foreseen."""
    place = rng.randrange(len(rows))
    row, others = rows[place], [r.member for r in rows if r.kind == "view"]
    number: dict[str, list[object]] = {
        name: [None, 0, value + 1, value + rng.randint(2, 10**10), 2**63 - 1, -1]
        for name in ("seqno", "count", "pos", "nbytes", "digest", "sent_at", "at", "low", "high")
        if (value := getattr(row, name)) is not None
    }
    number["count"] = [None, 0, 1, row.count + 1]
    if "seqno" in number and row.kind in ("sent", "delivered", "skipped", "purged"):
        number["seqno"] = [None, 0, (row.seqno or 0) + 1, 2**63 - 1, -1]
    changes = [
        *((name, value) for name, values in number.items() for value in values),
        *(("kind", value) for value in (None, "teleported", "teleported", "acked", "sent")),
        *((name, None) for name in ("member", "view", "view_by", "peer", "members", "sender")),
        *((name, rng.choice(others)) for name in ("sender", "sender", "member", "view_by", "peer")),
    ]
    name, value = rng.choice(changes)
    changed = row._replace(**{name: value})  # type: ignore[arg-type]  # wrong types are the point
    instead = rng.choice([[changed], [changed], [changed], [changed], [], [row, row]])
    return [*rows[:place], *instead, *rows[place + 1 :]]
