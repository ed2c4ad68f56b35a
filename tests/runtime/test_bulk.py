"""Large messages over real sockets: byte for byte, in order, and nobody waits for one that is busy.

What the protocol does with loss and members that stand still is tested in the simulator; here it
meets sockets that overflow, processes that take turns, and memory that the kernel counts.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ringcast import StackSpec, presets, sync
from ringcast.control.failure_detector import FailureDetector
from tests.runtime.members import Process
from tests.runtime.namespaces import namespace
from tests.runtime.support import SPECS, group_name

SIZES = [20_000_000] * 5 + [100_000_000]
TIME = 60.0
"""Seconds in which it has to be done on a machine that has much else to do."""


PATIENT = FailureDetector(interval=1.0, timeout=20.0, verify=5.0)
"""Nobody crashes here, and a process that gets no turn for seconds is no reason for a view."""


class Bulk(Process):
    """A member that says what large messages were."""

    program = "tests/runtime/bulk_member.py"


def bulk(kind: str, seed: str | None) -> StackSpec:
    """The preset over a transport."""
    base = SPECS[kind](seed)
    return presets.bulk().replace(base["discovery"], PATIENT, base["transport"])


@contextmanager
def members(*names: str, kind: str, wrapper: tuple[str, ...] = ()) -> Iterator[list[Bulk]]:
    group, started = group_name(), list[Bulk]()
    try:
        seed = None
        for name in names:
            started.append(Bulk(group, name, bulk(kind, seed), *wrapper))
            if seed is None:
                seed = str(started[0].hear("joined")["endpoint"])
        for process in started:
            process.hear_view(*names)
        yield started
    finally:
        for process in started:
            process.end()


class Heard:
    """What a member has said until it had got this many messages, and sent its own if it did."""

    def __init__(self, process: Bulk, count: int, sends: bool = False) -> None:
        self.got: dict[str, list[object]] = {}
        """Digests, by who sent the messages."""
        self.sent: object = None
        self.grown = 0
        self.events: list[object] = []
        self.progress: list[int] = []
        """Of the largest message."""
        until = time.monotonic() + TIME
        while count > 0 or (sends and self.sent is None):
            report = process.hear("", until - time.monotonic())
            if "got" in report:
                count -= 1
                self.got.setdefault(str(report["from"]), []).append(report["got"])
            elif "sent" in report:
                self.sent, self.grown = report["sent"], int(str(report["grown"]))
            elif "event" in report:
                self.events.append(report["event"])
            elif report.get("total") == max(SIZES):
                self.progress.append(int(str(report["progress"])))


def exchange(a: Bulk, *others: Bulk) -> None:
    """One sends a burst; everybody gets it byte for byte, and sees how far it is."""
    a.tell(send=SIZES)
    sender = Heard(a, len(SIZES), sends=True)
    assert sender.grown <= max(SIZES), "besides what it was given, it keeps less than a message"
    for heard in (sender, *(Heard(other, len(SIZES)) for other in others)):
        assert heard.got == {"a": sender.sent}
        assert heard.events == []
        assert heard.progress == sorted(heard.progress)
        assert heard.progress[-1] == max(SIZES)
        assert len(heard.progress) >= 3


@pytest.mark.parametrize("kind", ["multicast", "tcp"])
def test_a_burst_of_large_messages(kind: str) -> None:
    with members("a", "b", "c", kind=kind) as (a, b, c):
        exchange(a, b, c)


def test_a_burst_of_large_messages_in_a_network_of_its_own() -> None:
    with (
        namespace() as inside,
        members("a", "b", "c", kind="multicast", wrapper=inside) as (a, b, c),
    ):
        exchange(a, b, c)


def test_two_send_large_messages_to_each_other() -> None:
    sizes = [30_000_000] * 3
    with members("a", "b", "c", kind="multicast") as (a, b, c):
        for process in (a, b):
            process.tell(send=sizes)
        senders = {p.name: Heard(p, 2 * len(sizes), sends=True) for p in (a, b)}
        sent = {name: heard.sent for name, heard in senders.items()}
        for heard in (*senders.values(), Heard(c, 2 * len(sizes))):
            assert heard.got == sent
            assert heard.events == []


def test_what_an_application_keeps_of_messages_stays_what_it_was() -> None:
    sizes = [9_000_000 + n for n in range(12)]
    messages = [bytes([n]) * size for n, size in enumerate(sizes)]
    name, spec = group_name(), bulk("multicast", None)
    with (
        sync.join(name, spec, views=True) as receiver,
        sync.join(name, spec, receive=False) as sender,
    ):
        thread = threading.Thread(target=lambda: sender.send_many(messages))
        thread.start()
        kept: list[bytes | memoryview] = []
        for number, message in enumerate(receiver):
            assert message.payload == messages[number]
            if number % 3 == 0:
                kept.append(message.payload[number * 1_000 :][: 8_000_000 if number else 1])
            if number == len(messages) - 1:
                break
        thread.join(TIME)
        assert [set(bytes(part)) for part in kept] == [{0}, {3}, {6}, {9}]


@pytest.mark.slow
def test_one_whose_application_is_busy_does_not_hold_up_the_others() -> None:
    count = 8
    with members("a", "b", "c", kind="multicast") as (a, b, c):
        c.tell(block=10.0)
        c.hear("ready")
        a.tell(send=[20_000_000] * count)
        c.hear("blocked", TIME)
        sender, other = Heard(a, count, sends=True), Heard(b, count)
        assert sender.got == other.got == {"a": sender.sent}
        assert sender.events == ["Outpaced"]
        late = Heard(c, count)
        assert late.got == {"a": sender.sent}  # All of it had come, and waited.
        assert late.events == []
