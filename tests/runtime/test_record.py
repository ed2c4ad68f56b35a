"""Recorders: what is acked is safe, stopping loses nothing, and a full disk stops only them."""

import errno
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ringcast import sync
from ringcast.control.failure_detector import FailureDetector
from ringcast.journal import Files, Journal, JournalFull, JournalWriter
from ringcast.journal.write.recorder import Recorder
from tests.runtime.command import Command, endpoint, node, run
from tests.runtime.support import SOON, group_name, members, memory, numbered, running
from tests.runtime.waiting import wait_until


class StuckDisk(Files):
    """Syncs nothing until it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may = threading.Event()

    def sync(self, fd: int) -> None:
        self.asked.set()
        assert self.may.wait(SOON)
        super().sync(fd)


class FullDisk(Files):
    """Has no room for what is synced."""

    def sync(self, fd: int) -> None:
        raise OSError(errno.ENOSPC, "no space")


def payloads(directory: Path) -> list[bytes]:
    """All messages of a journal, by sender and number."""
    rows = [row for batch in Journal(directory).read() for row in batch.to_pylist()]
    rows.sort(key=lambda row: (row["sender"], row["seqno"]))
    return [row["payload"] for row in rows]


def receiver(group: sync.Group) -> Callable[[], None]:
    """Takes everything until the group is left."""

    def take_all() -> None:
        while group.take():
            pass

    return take_all


def test_everything_is_recorded_and_sealed_when_it_stops(tmp_path: Path) -> None:
    with members(2, "memory") as (sender, recording):
        journal = JournalWriter(tmp_path / "j", "prices", recording.me)
        recorder = Recorder(recording, journal)
        with running(receiver(sender)):
            with running(recorder.run):
                sender.send_many(numbered("x", 500), timeout=SOON)
                recorder.stop()
            assert recording.closed == "left"
            sender.leave(timeout=SOON)
    recorded = payloads(tmp_path / "j")
    assert recorded == numbered("x", recorder.messages)
    assert Journal(tmp_path / "j").holes() == {}


def test_in_durable_mode_nothing_is_acked_before_it_is_on_disk(tmp_path: Path) -> None:
    disk = StuckDisk()
    disk.may.set()
    with members(2, "memory", capacity=10) as (sender, recording):
        journal = JournalWriter(tmp_path / "j", "g", recording.me, roll_seconds=600, files=disk)
        recorder = Recorder(recording, journal)
        disk.may.clear()
        disk.asked.clear()
        with running(receiver(sender)):
            with running(recorder.run):
                with running(lambda: sender.send_many(numbered("x", 20), timeout=SOON)) as sending:
                    assert disk.asked.wait(SOON)
                    # The window holds ten; the rest waits for an ack, hence for the disk.
                    wait_until(lambda: sender.stats()["waits_for"] == ["m1"])
                    assert acks(sender)[str(recording.me)] == 0
                    assert sending.is_alive()
                    disk.may.set()
                wait_until(lambda: recorder.messages == 20)
                recorder.stop()
            sender.leave(timeout=SOON)
    assert payloads(tmp_path / "j") == numbered("x", 20)


def test_stopping_while_the_disk_is_stuck_acks_nothing_either(tmp_path: Path) -> None:
    disk = StuckDisk()
    disk.may.set()
    with members(2, "memory") as (sender, recording):
        journal = JournalWriter(tmp_path / "j", "g", recording.me, roll_seconds=600, files=disk)
        recorder = Recorder(recording, journal)
        disk.may.clear()
        disk.asked.clear()
        with running(receiver(sender)), running(recorder.run):
            sender.send(b"x", timeout=SOON)
            assert disk.asked.wait(SOON)
            recorder.stop()
            sender.send(b"y", timeout=SOON)
            wait_until(lambda: acks(sender)[str(sender.me)] == 2)
            assert acks(sender)[str(recording.me)] == 0
            disk.may.set()
            wait_until(lambda: recording.closed is not None)
            sender.leave(timeout=SOON)
    assert payloads(tmp_path / "j")[:1] == [b"x"]


def test_a_recorder_with_a_full_disk_leaves_the_group(tmp_path: Path) -> None:
    patient = memory().replace(FailureDetector(interval=1.0, timeout=600.0))
    name = group_name()
    with sync.join(name, patient) as sender, sync.join(name, patient) as recording:
        journal = JournalWriter(tmp_path / "j", "g", recording.me, files=FullDisk())
        recorder = Recorder(recording, journal)
        with running(receiver(sender)):
            sender.send(b"x", timeout=SOON)
            with pytest.raises(JournalFull, match="free some space"):
                recorder.run()
            assert recording.closed == "left"
            wait_until(lambda: len(sender.view) == 1)
            sender.send(b"y", timeout=SOON)
            sender.leave(timeout=SOON)
    assert recorder.messages == 0


def test_the_command_records_until_sigterm(
    tmp_path: Path, home: Path, running: list[Command]
) -> None:
    group, place = f"g-{tmp_path.name}", tmp_path / "j"
    ann = node(running, home, group, "ann", "--port", "0", "--stay")
    words = ("--to", str(place), "--seeds", endpoint(ann), "--name", "tape")
    tape = Command(home, "record", group, *words)
    running.append(tape)
    assert "on disk" in tape.err.hear("durable")
    ann.err.hear("tape joined")
    ann.say("one", "two")
    ann.out.hear("two")
    tape.signal(signal.SIGTERM)
    tape.err.hear("sealed: 2 messages")
    assert tape.status() == 0
    assert payloads(place) == [b"one", b"two"]


def test_the_command_says_when_it_is_not_durable(
    tmp_path: Path, home: Path, running: list[Command]
) -> None:
    words = ("record", f"g-{tmp_path.name}", "--to", str(tmp_path / "j"), "--port", "0")
    tape = Command(home, *words, "--no-durable", "--json")
    running.append(tape)
    tape.err.hear("not durable")
    tape.signal(signal.SIGINT)
    assert tape.status() == 0
    assert '"durable": false' in tape.out.hear("messages")


def test_a_place_that_is_no_journal_is_refused_in_a_sentence(tmp_path: Path, home: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = run(home, "record", "g", "--to", str(tmp_path / "file"))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "is a file" in err


def acks(sender: sync.Group) -> dict[str, int]:
    """What each member has acked of this one's messages."""
    layer = sender.stats()["multicast"]
    assert isinstance(layer, dict)
    found = layer["acks"]
    assert isinstance(found, dict)
    return found
