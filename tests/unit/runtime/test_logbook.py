"""The log: quiet unless asked, views as news, troubles as warnings, facts as data."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ringcast import ConfigError, sync
from ringcast.core.address import Address, Peer
from ringcast.core.events import Expelled, Merged, Skipped, Suspected, ViewChange
from ringcast.core.view import View, ViewId
from ringcast.runtime.logbook import Logbook, show_log
from ringcast.runtime.making import make_member
from tests.runtime.support import ROOT, group_name, memory

A, B = Address(1), Address(2)
VIEW = View(ViewId(3, A), (Peer(A, "ann", "x:1"), Peer(B, "bob barker", "y:1")))


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Where the log goes; the loggers are as before afterwards."""
    root = logging.getLogger("ringcast")
    before = (root.handlers[:], root.level, root.propagate)
    yield io.StringIO()
    root.handlers[:], root.level, root.propagate = before
    root.setLevel(before[1])


def note_all(*events: ViewChange | Suspected | Merged | Expelled | Skipped) -> None:
    """A member whose protocols say this."""
    member = make_member("g", memory(), "ann", True, 0)
    book = Logbook(member)
    for event in events:
        book.note(event)
    member.close()
    member.shut()


def test_each_event_has_its_level_and_its_facts(lines: io.StringIO) -> None:
    show_log("json", "info", lines)
    note_all(
        ViewChange(VIEW, (B,), ()),
        Suspected(B),
        Merged(VIEW, ((A,), (B,))),
        Expelled(VIEW, "asleep"),
        Skipped(B, 4, 6, "too late"),
    )
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(t["level"], t["event"]) for t in told] == [
        ("info", "view"),
        ("warning", "suspected"),
        ("warning", "merged"),
        ("warning", "expelled"),
        ("warning", "skipped"),
        ("info", "closed"),
    ]
    assert {t["group"] for t in told} == {"g"}
    assert {t["member"] for t in told} == {"ann"}
    view, suspected, merged, _, skipped, _ = told
    assert view["members"] == ["ann", "bob barker"]
    assert view["joined"] == ["bob barker"]
    assert view["message"] == "ann in g: view 3: ann, bob barker (bob barker joined)"
    assert suspected["peer"] == "bob barker"
    assert merged["subgroups"] == ["ann", "bob barker"]
    assert (skipped["sender"], skipped["first"], skipped["last"]) == ("bob barker", 4, 6)
    assert view["time"].endswith("Z")


def test_text_has_the_facts_as_key_and_value(lines: io.StringIO) -> None:
    show_log("text", "warning", lines)
    note_all(ViewChange(VIEW, (B,), ()), Suspected(B))
    (line,) = lines.getvalue().splitlines()
    assert " WARNING ringcast.group ann in g: bob barker does not answer" in line
    assert line.endswith(' event=suspected group=g member=ann peer="bob barker"')


def test_a_record_without_facts_and_one_with_a_trace(lines: io.StringIO) -> None:
    show_log("json", "info", lines)
    logging.getLogger("ringcast.udp").warning("give %d more", 7)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("ringcast").exception("it fails")
    plain, failing = (json.loads(line) for line in lines.getvalue().splitlines())
    assert plain["message"] == "give 7 more"
    assert plain["logger"] == "ringcast.udp"
    assert "ValueError: why" in failing["trace"]


def test_a_real_member_logs_its_view_and_its_end(lines: io.StringIO) -> None:
    show_log("json", "info", lines)
    with sync.join(group_name(), memory(), name="ann"):
        pass
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(t["event"], t["view"]) for t in told] == [("view", 1), ("closed", 1)]
    assert told[1]["reason"] == "left"


def test_without_a_handler_nothing_is_printed() -> None:
    script = (
        "from ringcast import sync, presets; from ringcast.transports import Memory\n"
        "import logging; g = sync.join('g', presets.loopback().replace(Memory()));"
        "logging.getLogger('ringcast.group').warning('x'); g.leave()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_others_that_are_not_understood_are_named_once(lines: io.StringIO) -> None:
    show_log("text", "warning", lines)
    member = make_member("g", memory(), "ann", True, 0)
    book = Logbook(member)
    book.note(ViewChange(VIEW, (B,), ()))
    assert lines.getvalue() == ""
    member.stack.counters["dropped_wrong_version"] = 3
    book.note(ViewChange(VIEW, (B,), ()))
    book.note(ViewChange(VIEW, (B,), ()))
    (line,) = lines.getvalue().splitlines()
    assert "within reach of g speaks another version of the protocol" in line
    member.close()
    member.shut()


@pytest.mark.parametrize(("form", "level"), [("xml", "info"), ("text", "loud")])
def test_what_cannot_be_is_said(form: str, level: str) -> None:
    with pytest.raises(ConfigError, match="give one of"):
        show_log(form, level)
