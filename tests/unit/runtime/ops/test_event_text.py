"""What people and programs are told about a group."""

import json

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import (
    Event,
    Expelled,
    Merged,
    Progress,
    Skipped,
    Suspected,
    ViewChange,
)
from ringcast.core.model.view import View, ViewId
from ringcast.runtime.ops.event_text import (
    JsonEventWriter,
    Names,
    TextEventWriter,
    sentence,
)

ANN, BOB = Address(0xA), Address(0xB)
ALONE = View(ViewId(1, ANN), (Peer(ANN, "ann", "h:1"),))
BOTH = View(ViewId(2, ANN), (*ALONE.peers, Peer(BOB, "bob\x07", "h:2")))

EVENTS: list[Event] = [
    ViewChange(ALONE, (ANN,), ()),
    ViewChange(BOTH, (BOB,), ()),
    Batch(BOB, [b"one", b"\xff\x1b[2J\n"], 8, first=5),
    Suspected(BOB),
    ViewChange(ALONE, (), (BOB,)),
    Batch(BOB, [b"late"], 4, first=7),
    Merged(BOTH, ((ANN,), (BOB,))),
    Expelled(ALONE, "silence"),
    Skipped(BOB, 8, 9, "gone"),
]


def test_an_event_is_a_sentence_for_people() -> None:
    out: list[str] = []
    aside: list[str] = []
    text = TextEventWriter(out.append, aside.append)
    text.joined("chat", "ann", ANN, "h:1")
    for event in EVENTS:
        text.show(event)
    text.left()
    assert "\n".join(out).splitlines() == [
        r"bob\x07: one",
        r"bob\x07: \xff\x1b[2J\n",
        r"bob\x07: late",
    ]
    assert aside == [
        "joined chat as ann at h:1",
        "view 1: ann",
        r"view 2: ann, bob\x07 (bob\x07 joined)",
        r"bob\x07 does not answer, and is suspected to have crashed",
        r"view 1: ann (bob\x07 left)",
        "2 groups that had been apart are one again",
        "this member is alone now, until a merge: silence",
        r"2 messages of bob\x07 will not come: gone",
        "left",
    ]


def test_an_event_is_a_record_for_programs() -> None:
    out: list[str] = []
    text = JsonEventWriter(out.append)
    text.joined("chat", "ann", ANN, "h:1")
    for event in [*EVENTS, Progress(ANN, 3, 10, 20)]:
        text.show(event)
    text.left()
    told = [json.loads(line) for line in "\n".join(out).splitlines()]
    assert told[0] == {
        "type": "joined",
        "group": "chat",
        "name": "ann",
        "address": "a",
        "endpoint": "h:1",
    }
    bob = r"bob\x07"
    assert told[2] == {
        "type": "view",
        "id": "2@a",
        "members": ["ann", bob],
        "joined": [bob],
        "left": [],
    }
    assert told[3] == {"type": "message", "from": bob, "address": "b", "seqno": 5, "text": "one"}
    assert told[4]["seqno"] == 6
    assert told[4]["base64"] == "/xtbMkoK"
    assert told[5] == {"type": "suspected", "member": bob}
    assert told[8]["subgroups"] == [["ann"], [bob]]
    assert told[9] == {"type": "expelled", "view": "1@a", "reason": "silence"}
    assert told[11] == {"type": "progress", "sender": "ann", "message": 3, "done": 10, "total": 20}
    assert told[-1] == {"type": "left"}


def test_a_reason_that_a_member_sent_cannot_control_the_terminal() -> None:
    names = Names()
    view = View(ViewId(1, Address(1)), (Peer(Address(1), "a", "h:1"),))
    for event in (
        Expelled(view, "\x1b[2Jgone\nforged line"),
        Skipped(Address(1), 1, 2, "\x1b]0;x\x07\r\n"),
    ):
        line = sentence(event, names)
        assert line.isprintable()
        assert "\\x1b" in line
