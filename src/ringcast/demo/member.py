"""One member of the demo's group, in a process of its own: commands come and reports go as JSON.

Commands, one object per line: {"send": true}, {"calm": true} (send no more), {"end": true} (send
the last message), {"clock": seconds} (its wall clock jumps), {"digest": true} (sum the replicated
state up), {"leave": true}, or {"leave": "early"} while others send: then it promises nothing.
Reports: {"joined", "endpoint"}, {"view": names}, {"sent": so far}, {"finished"}, {"done": a sender
whose last message came}, {"digest", "writers"}, {"left", "lost", "recorded"}, {"failed": why}. At
the end of its input it stops at once: the process that told it what to do is gone.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from argparse import ArgumentParser, Namespace

from ringcast import sync
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, Merged, ViewChange
from ringcast.core.model.view import View
from ringcast.demo.replica import UNITED, Replica
from ringcast.demo.wall_clock import jump
from ringcast.errors import Closed, RingcastError
from ringcast.journal import JournalWriter
from ringcast.journal.write.recorder import Recorder, prepare
from ringcast.spec import StackSpec
from ringcast.trace.live import LiveTrace
from ringcast.trace.writer import TraceSpec

DONE = b"done"
"""The last message of every sender, when all others have sent theirs."""
RUN_SECONDS = 0.02
"""Messages of this many seconds are sent as one run."""
REPORT_SECONDS = 0.25
ROTATE_SECONDS = 1.0
"""How much of its trace a member that is killed may lose."""


def main() -> int:
    """Join, and do what is asked for; 1 with a sentence on standard error when that fails."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    try:
        _Member(_arguments()).run()
    except RingcastError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


class _Member:
    """A member that sends, or one that records."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._view: View | None = None
        self._trace = LiveTrace(arguments.trace, TraceSpec(rotate_seconds=ROTATE_SECONDS))
        stack = StackSpec.load(arguments.spec)
        self._replica = Replica() if arguments.replica else None
        self._merging = threading.Condition()
        self._merges = self._told = 0
        """Merges of partitions, and those after which the others were told the state."""
        self._group = sync.join(
            arguments.group,
            stack,
            name=arguments.name,
            observer=self._trace,
            state=arguments.replica,
            on_state_request=None if self._replica is None else self._replica.pack,
        )
        self._recorder: Recorder | None = None
        self._calm = threading.Event()
        if arguments.journal:
            prepare(arguments.journal)
            journal = JournalWriter(arguments.journal, arguments.group, self._group.me)
            self._recorder = Recorder(self._group, journal, self._saw)

    def run(self) -> None:
        """Until it is told to leave, or the process that would tell it has ended."""
        report(joined=self._arguments.name, endpoint=self._group.endpoint)
        if self._replica is not None:
            self._replica.unite(self._group.state() or b"{}")
            threading.Thread(target=self._tell_state, name="teller", daemon=True).start()
        taker = threading.Thread(target=self._take, name="taker", daemon=True)
        taker.start()
        for line in sys.stdin:
            command = json.loads(line)
            if "send" in command:
                threading.Thread(target=self._send, name="sender", daemon=True).start()
            elif "calm" in command:
                self._calm.set()
            elif "end" in command:
                with self._merging:
                    self._merging.wait_for(lambda: self._told == self._merges)
                self._group.send(DONE)
            elif "clock" in command:
                jump(command["clock"])
            elif "digest" in command and self._replica is not None:
                report(digest=self._replica.digest, writers=len(self._replica))
            elif "leave" in command:
                self._leave(taker, is_early=command["leave"] == "early")
                return
        os._exit(1)

    def _take(self) -> None:
        try:
            if self._recorder is not None:
                self._recorder.run()
            else:
                while events := self._group.take():
                    self._saw(events)
        except Closed:
            pass
        except RingcastError as error:  # The disk of the recorder; the group goes on.
            report(failed=str(error))

    def _saw(self, events: list[Event]) -> None:
        for event in events:
            if self._replica is not None and isinstance(event, Batch):
                self._replica.apply(event.payloads)
            elif self._replica is not None and isinstance(event, Merged):
                with self._merging:
                    self._merges += 1
                    self._merging.notify_all()
        for event in events:
            if isinstance(event, ViewChange):
                self._view = event.view
                report(view=[peer.name for peer in event.view.peers])
            elif isinstance(event, Batch) and event.payloads[-1] == DONE and self._view:
                report(done=self._view.name(event.sender))

    def _tell_state(self) -> None:
        """After each merge, tell the others what this side of the partition has.

        Not where events are taken: a member that does not take while it sends may wait for itself.
        """
        assert self._replica is not None
        while True:
            with self._merging:
                self._merging.wait_for(lambda: self._told < self._merges)
                seen = self._merges
            try:
                self._group.send(UNITED + self._replica.pack())
            except Closed:
                return
            with self._merging:
                self._told = seen
                self._merging.notify_all()

    def _send(self) -> None:
        """Send at an even pace, so that there is a while in which something can happen."""
        settings, sent = self._arguments, 0
        run = max(1, round(settings.messages * RUN_SECONDS / settings.seconds))
        began = reported = time.monotonic()
        while sent < settings.messages and not self._calm.is_set():
            count = min(run, settings.messages - sent)
            try:
                self._group.send_many(payloads(settings.name, sent, count, settings.size))
            except Closed:
                return  # It leaves while it sends.
            sent += count
            now = time.monotonic()
            if now - reported >= REPORT_SECONDS:
                reported = now
                report(sent=sent)
            time.sleep(max(0.0, began + sent * settings.seconds / settings.messages - now))
        report(sent=sent, finished=True)

    def _leave(self, taker: threading.Thread, is_early: bool) -> None:
        if not is_early:
            # The parent has made sure that everything sent has arrived.
            self._trace.vouch()
        lost = self._group.stats()["counters"]
        if self._recorder is not None:
            self._recorder.stop()
        else:
            self._group.leave()
        taker.join()
        recorded = 0 if self._recorder is None else self._recorder.messages
        report(left=True, lost=lost.get("dropped_on_purpose", 0), recorded=recorded)


def payloads(name: str, first: int, count: int, size: int) -> list[bytes]:
    """Messages that say who sent them and the how-manieth they are."""
    return [f"{name} {number}".encode().ljust(size) for number in range(first, first + count)]


def report(**what: object) -> None:
    """Say something to the process that started this one; it may be gone."""
    try:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="ringcast.demo.member")
    parser.add_argument("group")
    parser.add_argument("name")
    parser.add_argument("--trace", required=True)
    parser.add_argument("--journal")
    parser.add_argument("--replica", action="store_true", help="keep a replicated state")
    parser.add_argument("--spec", required=True, help="the stack, in a file")
    parser.add_argument("--messages", type=int, default=0)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
