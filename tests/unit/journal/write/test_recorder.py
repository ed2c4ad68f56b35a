"""The recorder: what of all that a member is given belongs into the journal."""

from pathlib import Path
from typing import cast

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Progress, Skipped, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.journal import Journal, JournalWriter
from ringcast.journal.write.recorder import Recorder
from ringcast.sync import Group

ME, SENDER = Address(1), Address(7)


def test_messages_for_this_member_alone_are_neither_recorded_nor_missed(tmp_path: Path) -> None:
    view = View(ViewId(3, ME), (Peer(ME, "me", ""), Peer(SENDER, "sender", "")))
    with JournalWriter(tmp_path, "prices", ME) as journal:
        recorder = Recorder(cast(Group, None), journal)
        recorder._keep(
            [
                ViewChange(view, (ME, SENDER), ()),
                Batch(SENDER, [b"1", b"2"], 2, first=1),
                Batch(SENDER, [b"only you"], 8, first=1, dest=ME),
                Progress(SENDER, 1, 10, 20),
                Skipped(SENDER, 5, 9, "it was for this member alone", direct=True),
                Skipped(SENDER, 3, 4, "the sender no longer has it"),
                Batch(SENDER, [b"5"], 1, first=5),
            ]
        )
        assert recorder.messages == 3
    journaled = Journal(tmp_path)
    assert journaled.holes() == {("prices", SENDER): ((3, 4),)}
    assert [segment.cover for segment in journaled.segments] == [{SENDER: ((1, 2), (5, 5))}]
