"""The live view of a real group: what happens to members is soon to be seen from another one."""

import json
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser

import pytest

from ringcast import Address, sync
from ringcast.runtime.live.rows import MemberRow
from ringcast.runtime.live.server import LivePage
from ringcast.runtime.live.text import lines_of
from ringcast.runtime.live.watch import GroupWatch, Snapshot
from tests.runtime.support import SOON, SPECS, await_view, group_name, memory, running
from tests.runtime.waiting import wait_until

KEY = b"k" * 32


@contextmanager
def watched(
    kind: str = "memory", key: bytes | None = None
) -> Iterator[tuple[sync.Group, sync.Group, GroupWatch]]:
    """Two members, and a third that watches them."""
    name = group_name()
    with sync.join(name, SPECS[kind](None), name="ann", key=key) as ann:
        spec = SPECS[kind](ann.endpoint)
        with (
            sync.join(name, spec, name="bob", key=key) as bob,
            sync.join(name, spec, name="eve", key=key, receive=False) as eve,
        ):
            for group in (ann, bob):
                await_view(group, 3)
            yield ann, bob, GroupWatch(eve)


def seen(watch: GroupWatch, holds: Callable[[Snapshot], bool]) -> Snapshot:
    """The first look at which this holds."""
    found: list[Snapshot] = []

    def look() -> bool:
        found[:] = [watch.look()]
        return holds(found[0])

    wait_until(look)
    return found[0]


def row(snapshot: Snapshot, name: str) -> MemberRow:
    return next(row for row in snapshot["members"] if row["name"] == name)


def answered(snapshot: Snapshot) -> bool:
    return all(member["age"] >= 0 for member in snapshot["members"])


@pytest.mark.parametrize("kind", ["memory", "multicast", "tcp"])
def test_all_members_are_seen_from_one_place(kind: str) -> None:
    with watched(kind) as (ann, bob, watch):
        snapshot = seen(watch, answered)
        assert [member["name"] for member in snapshot["members"]] == ["ann", "bob", "eve"]
        told = row(snapshot, "ann")
        assert (told["role"], told["endpoint"]) == ("coordinator", ann.endpoint)
        assert row(snapshot, "bob")["round_trip_ms"] > 0
        assert snapshot["history"][-1]["why"] == "eve joined"
        bob.send_many([b"x" * 1_000] * 100)
        seen(watch, lambda s: row(s, "bob")["messages_out"] > 0)


def test_a_closed_group_is_seen_by_a_keyholder() -> None:
    with watched("multicast", KEY) as (_, _, watch):
        assert seen(watch, answered)["is_closed_group"]


def test_a_member_that_joins_and_one_that_is_killed_are_seen() -> None:
    with watched() as (ann, bob, watch):
        group = ann._member.group
        dan = sync.join(group, memory(), name="dan")
        joined = seen(watch, lambda s: len(s["members"]) == 4)
        assert "dan joined" in "\n".join(lines_of(joined))
        dan.close()
        gone = seen(watch, lambda s: len(s["members"]) == 3)
        assert gone["history"][-1]["why"] == "dan crashed or was cut off"
        bob.leave()
        left = seen(watch, lambda s: len(s["members"]) == 2)
        assert left["history"][-1]["why"] == "bob left"


def test_a_slow_member_is_seen_with_the_member_that_waits_for_it() -> None:
    """Neither ann nor bob takes anything, and so ann's sends block: the group is stuck."""
    with watched() as (ann, _, watch):

        def flood() -> None:
            try:
                while True:
                    ann.send_many([b"x" * 1_000] * 1_000)
            except Exception:
                pass  # The test closes the group.

        with running(flood):
            stuck = seen(watch, lambda s: bool(row(s, "ann")["waits_for"]))
            assert "bob" in row(stuck, "ann")["waits_for"]
            assert row(stuck, "ann")["window_percent"] > 0
            seen(watch, lambda s: row(s, "bob")["unread_bytes"] > 0)
            assert "WAITS    ann has waited " in "\n".join(lines_of(stuck))
            ann.close()


def give(group: sync.Group, to: Address, content: bytes, now: float) -> None:
    """Answer a question as no member would."""
    group._service._inquiries.asked[to] = 1
    group._service._inquiries.answer(content)


def test_a_report_that_is_made_up_is_not_shown() -> None:
    with watched() as (ann, _, watch):
        watch.look()
        for content in (b"", b"junk", b"x\x9c", zlib.compress(b"{}"), zlib.compress(b"[1]")):
            ann._member.act(partial(give, ann, watch._group.me, content))
        assert seen(watch, answered)


class Ids(HTMLParser):
    """The ids and the addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids, self.links = set[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.ids.add(found.get("id", ""))
        self.links += [found[key] for key in ("src", "href") if key in found]


def test_the_page_shows_the_group_and_needs_nothing_from_elsewhere() -> None:
    with watched() as (_, _, watch):
        seen(watch, answered)
        page = LivePage("127.0.0.1", 0, watch.look)
        try:
            with urllib.request.urlopen(f"http://{page.endpoint}/", timeout=SOON) as answer:
                text = answer.read().decode()
            with urllib.request.urlopen(f"http://{page.endpoint}/group.json", timeout=SOON) as got:
                snapshot = json.load(got)
            other = urllib.request.Request(
                f"http://{page.endpoint}/group.json", headers={"Host": "elsewhere.test"}
            )
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(other, timeout=SOON)
        finally:
            page.close()
    parsed = Ids()
    parsed.feed(text)
    assert parsed.links == []
    assert {"members", "troubles", "history", "freeze", "details"} <= parsed.ids
    for key in snapshot["members"][0]:
        assert key in MemberRow.__annotations__
    for shown in ("waits_for", "window_percent", "unread_bytes", "drops", "round_trip_ms"):
        assert f"row.{shown}" in text or f"r.{shown}" in text


def test_watching_costs_little() -> None:
    """A report is made in far less than the hundredth of a second that 1 % would be."""
    with watched() as (ann, _, watch):
        seen(watch, answered)
        began = time.process_time()
        for _ in range(20):
            ann._service.inquire()
        assert (time.process_time() - began) / 20 < 0.01
