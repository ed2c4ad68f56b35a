"""Reports of broken and hostile members: the live view takes them or leaves them, and goes on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

import ringcast
from ringcast import presets
from ringcast.runtime.live.reports import ITEMS_MAX, read_report
from ringcast.runtime.live.text import SORTS, details_of, lines_of
from ringcast.runtime.live.watch import GroupWatch
from ringcast.runtime.member.stats import member_report, packed
from ringcast.services.inquiries import Received
from ringcast.transports import Memory

Path = tuple[str | int, ...]
HOSTILE = {
    "infinity": float("inf"),
    "not a number": float("nan"),
    "a large float": 1e308,
    "a large number": 10**400,
    "a negative number": -(10**18),
    "a text": "12",
    "a long number in a text": "9" * 5_000,
    "digits of another script": "٣@1",
    "control characters": "\x1b[2J\nview\x07",
    "half a pair of surrogates": "\ud800",
    "nothing": None,
    "a list": [[]],
    "a mapping": {"": {}},
    "a nested list": [[[[[[["high"]]]]]]],
    "yes": True,
}


@pytest.fixture(scope="module")
def watch() -> Iterator[GroupWatch]:
    spec = presets.loopback().replace(Memory())
    with ringcast.sync.join("reports", spec, name="a") as group:
        group.send(b"something")
        yield GroupWatch(group)


def paths(value: object, at: Path = ()) -> Iterator[Path]:
    """Every place in a report."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*at, index))


def changed(report: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    made = deepcopy(report)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


def own_report(watch: GroupWatch) -> dict[str, Any]:
    member = watch._group._member
    made = member_report(member, member.began + 5.0)
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def show(watch: GroupWatch) -> None:
    """All that `ringcast top` and `ringcast ui` make of what was reported."""
    snapshot = watch.look()
    for sort in SORTS:
        for line in lines_of(snapshot, sort):
            line.encode()
            assert line.isprintable()
    for row in snapshot["members"]:
        assert all(line.isprintable() for line in details_of(row))
    json.dumps(snapshot, allow_nan=False)  # A browser reads no other.


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_value_in_a_report_ends_the_live_view(watch: GroupWatch, value: object) -> None:
    honest, me = own_report(watch), watch._group.me
    report = dict(honest, blocked_senders=[1.0], waits_for=["b"], failure={"suspected": ["b"]})
    report["counters"] = {**honest["counters"], "dropped_late": 1}
    found = list(paths(report))
    assert len(found) > 80
    for number, path in enumerate(found):
        content = zlib.compress(json.dumps(changed(report, path, value)).encode(), 1)
        for sent, at in ((content, 2.0 * number), (packed(honest), 2.0 * number + 1)):  # type: ignore[arg-type]
            watch._keep(me, Received(sent, at, 0.001))
            if me in watch._samples:
                show(watch)


def test_what_a_report_lacks_does_not_end_the_live_view(watch: GroupWatch) -> None:
    honest, me = own_report(watch), watch._group.me
    for number, key in enumerate(honest):
        report = {other: value for other, value in honest.items() if other != key}
        content = zlib.compress(json.dumps(report).encode(), 1)
        watch._keep(me, Received(content, -1.0 - number, 0.001))
        show(watch)


def test_nothing_is_kept_of_a_report_that_the_view_does_not_show(watch: GroupWatch) -> None:
    honest = own_report(watch)
    read = read_report(zlib.compress(json.dumps({**honest, "more": [[]] * 100_000}).encode()))
    assert len(json.dumps(read)) < len(json.dumps(honest))
    many = {**honest, "waits_for": ["x"] * (ITEMS_MAX + 1)}
    with pytest.raises(ValueError, match="too long"):
        read_report(zlib.compress(json.dumps(many).encode()))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"no zlib"),
        *map(zlib.compress, (b"[" * 100_000, b'{"a":' * 50_000, b"1" * 9_999, b"[]", b"\xff")),
    ],
)
def test_what_is_not_a_report_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_report(content)


def test_a_report_of_the_largest_view_is_taken(watch: GroupWatch) -> None:
    honest = own_report(watch)
    peer, window = honest["peers"][0], {"delivered": 1, "low": 0, "high": 1}
    honest["peers"] = [dict(peer, address=f"{n:x}") for n in range(2_000)]
    honest["multicast"]["windows"] = {f"{n:x}": window for n in range(2_000)}
    honest["history"] = [dict(honest["history"][0], members=["name"] * 2_000)] * 20
    assert len(read_report(zlib.compress(json.dumps(honest).encode()))["peers"]) == 2_000
