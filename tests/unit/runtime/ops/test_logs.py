"""The log: quiet unless asked, views as news, troubles as warnings, facts as data."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ringcast import ConfigError, sync
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.events import (
    DatagramsResized,
    Expelled,
    Merged,
    Notice,
    Skipped,
    Suspected,
    ViewChange,
)
from ringcast.core.model.view import View, ViewId
from ringcast.runtime.api.factory import make_member
from ringcast.runtime.ops.logs import EventLogger, show_log
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


def note_all(*events: Notice) -> None:
    """A member whose protocols say this."""
    member = make_member("g", memory(), "ann", True, 0)
    logger = EventLogger(member)
    for event in events:
        logger.note(event)
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
        ("info", "security"),
        ("info", "view"),
        ("warning", "suspected"),
        ("warning", "merged"),
        ("warning", "expelled"),
        ("warning", "skipped"),
        ("info", "closed"),
    ]
    assert {t["group"] for t in told} == {"g"}
    assert {t["member"] for t in told} == {"ann"}
    _, view, suspected, merged, _, skipped, _ = told
    assert view["members"] == ["ann", "bob barker"]
    assert view["joined"] == ["bob barker"]
    assert view["message"] == "ann in g: view 3: ann, bob barker (bob barker joined)"
    assert suspected["peer"] == "bob barker"
    assert merged["subgroups"] == ["ann", "bob barker"]
    assert (skipped["sender"], skipped["first"], skipped["last"]) == ("bob barker", 4, 6)
    assert view["time"].endswith("Z")


@pytest.mark.parametrize(
    ("event", "level", "words"),
    [
        (
            DatagramsResized(1_472, 8_972, "probe", (B,)),
            "warning",
            "datagrams have up to 1,472 bytes now: those of 8,972 bytes do not arrive at bob"
            " barker, smaller ones do",
        ),
        (
            DatagramsResized(1_272, 1_472, "interface", ()),
            "warning",
            "datagrams have up to 1,272 bytes now, what fits a packet of the interface (before:"
            " 1,472)",
        ),
        (
            DatagramsResized(1_472, 8_972, "view", ()),
            "info",
            "datagrams have up to 1,472 bytes now, the least of what the members take (before:"
            " 8,972)",
        ),
        (
            DatagramsResized(1_472, 1_300, "interface", ()),
            "info",
            "datagrams have up to 1,472 bytes now, what fits a packet of the interface (before:"
            " 1,300)",
        ),
    ],
)
def test_another_size_of_datagrams_is_one_sentence(
    lines: io.StringIO, event: DatagramsResized, level: str, words: str
) -> None:
    show_log("json", "info", lines)
    note_all(ViewChange(VIEW, (B,), ()), event)
    told = json.loads(lines.getvalue().splitlines()[2])
    assert (told["level"], told["event"]) == (level, "resized")
    assert told["message"] == f"ann in g: {words}"
    assert (told["bytes"], told["former"]) == (event.size, event.former)


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
    assert told.pop(0)["event"] == "security"
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
    logger = EventLogger(member)
    logger.note(ViewChange(VIEW, (B,), ()))
    assert lines.getvalue() == ""
    member.stack.counters["dropped_wrong_version"] = 3
    logger.note(ViewChange(VIEW, (B,), ()))
    logger.note(ViewChange(VIEW, (B,), ()))
    (line,) = lines.getvalue().splitlines()
    assert "within reach of g speaks another version of the protocol" in line
    member.close()
    member.shut()


@pytest.mark.parametrize(("form", "level"), [("xml", "info"), ("text", "loud")])
def test_what_cannot_be_is_said(form: str, level: str) -> None:
    with pytest.raises(ConfigError, match="give one of"):
        show_log(form, level)
