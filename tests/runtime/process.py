"""A member in a process of its own, for tests: commands come as JSON lines, reports go out so.

The first command is {"spec": TOML, "every": how often messages are reported}. Then:

    {"send": count, "size": bytes}      in a thread of its own; several at once are allowed
    {"flood": bytes}                    send messages of this size until {"calm": true}
    {"block": seconds}                  the application takes nothing meanwhile
    {"ask": true}                       say what has happened so far
    {"leave": true}

Reports: {"joined", "endpoint"}, {"view": names, "id", "past": what was delivered in the view before
it}, {"got": count of messages so far, "from": name, "in_order"}, {"sent": count}, {"blocked"},
{"event": its name}, {"calm": sent so far}, {"told": its views}, {"left", "past"}.

What was delivered in a view: per sender the first and the last message, how many, and a checksum of
all that they said; with total order, under "*", the same of all messages as they came. Members that
go on to the same view have to say the same.
"""

import json
import sys
import threading
import zlib
from collections import defaultdict

from ringcast import Batch, Closed, StackSpec, View, ViewChange, sync
from ringcast.core.model.address import Address
from tests.runtime.waiting import block

RUN = 100
"""Messages that are sent at once."""


def report(**what: object) -> None:
    """Say something to the test; several threads may."""
    with _out:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


_out = threading.Lock()


class Application:
    """Takes everything that comes, checks that it is in order, and sums it up per view."""

    def __init__(self, group: sync.Group, every: int, is_ordered: bool) -> None:
        self.group = group
        self._is_ordered = is_ordered
        self.block = 0.0
        self.views: list[str] = []
        self._every = every
        self._view: View | None = None
        self._count: dict[Address, int] = defaultdict(int)
        self._last: dict[Address, int] = {}
        self._names: dict[Address, str] = {}
        self._past: dict[str, tuple[int, int, int, int]] = {}

    def run(self) -> None:
        """Until the group is left."""
        for event in self.group.events():
            if self.block:
                seconds, self.block = self.block, 0.0
                report(blocked=seconds)
                block(seconds)
                report(awake=True)
            if isinstance(event, Batch):
                self._on_batch(event)
            elif isinstance(event, ViewChange):
                self._on_view(event.view)
                for member in (*event.joined, *event.left):
                    self._last.pop(member, None)  # What it sent elsewhere was not for this one.
            else:
                report(event=type(event).__name__, what=str(event))

    @property
    def past(self) -> dict[str, tuple[int, int, int, int]]:
        """What was delivered in this view: first, last, how many, and a checksum, per sender."""
        return self._past

    def _on_view(self, view: View) -> None:
        self._names.update({p.address: p.name for p in view.peers})
        self.views.append(str(view.id))
        report(view=[p.name for p in view.peers], id=str(view.id), past=self._past)
        self._view, self._past = view, {}

    def _on_batch(self, batch: Batch) -> None:
        sender = batch.sender
        before = self._count[sender]
        due = self._last.get(sender, batch.first - 1) + 1
        # A sequencer's ORDER messages take seqnos as well.
        in_order = batch.first >= due if self._is_ordered else batch.first == due
        self._last[sender] = batch.last
        self._count[sender] += len(batch)
        self._sum_up(batch)
        after = self._count[sender]
        if not in_order or before // self._every != after // self._every:
            name = self._names.get(sender, "?")
            report(got=after - after % self._every, **{"from": name, "in_order": in_order})

    def _sum_up(self, batch: Batch) -> None:
        self._add(self._names.get(batch.sender, str(batch.sender)), batch)
        if self._is_ordered:
            self._add("*", batch)

    def _add(self, name: str, batch: Batch) -> None:
        first, _, count, checksum = self._past.get(name, (batch.first, 0, 0, 0))
        for payload in batch.payloads:
            checksum = zlib.crc32(payload, checksum)
        self._past[name] = (first, batch.last, count + len(batch), checksum)


class Sender:
    """Sends from threads of its own, so that commands are heard meanwhile."""

    def __init__(self, group: sync.Group) -> None:
        self._group = group
        self._calm = threading.Event()

    def send(self, count: int, size: int) -> None:
        """Send this many messages, in runs."""
        for begin in range(0, count, RUN):
            self._send_run(begin, min(RUN, count - begin), size)
        report(sent=count)

    def flood(self, size: int) -> None:
        """Send as fast as the group takes it, until it is enough."""
        sent = 0
        while not self._calm.is_set():
            self._send_run(sent, RUN, size)
            sent += RUN
        report(calm=sent)

    def calm(self) -> None:
        """It is enough."""
        self._calm.set()

    def start(self, work: str, *numbers: int) -> None:
        """Begin to send."""

        def run() -> None:
            try:
                getattr(self, work)(*numbers)
            except Closed:
                report(interrupted=True)

        threading.Thread(target=run, daemon=True).start()

    def _send_run(self, first: int, count: int, size: int) -> None:
        name = self._group.name
        payloads = [f"{name} {number}".encode() for number in range(first, first + count)]
        self._group.send_many([payload.ljust(size) for payload in payloads])


def main() -> None:
    """Join, and do what is asked for."""
    name, member = sys.argv[1:3]
    first = json.loads(sys.stdin.readline())
    spec = StackSpec.from_toml(first["spec"])
    group = sync.join(name, spec, name=member, timeout=60.0)
    report(joined=str(group.me), endpoint=group.endpoint)
    application = Application(group, first.get("every", RUN), "order" in spec)
    sender = Sender(group)
    taker = threading.Thread(target=application.run, daemon=True)
    taker.start()
    for line in sys.stdin:
        command = json.loads(line)
        if "send" in command:
            sender.start("send", command["send"], command.get("size", 100))
        elif "flood" in command:
            sender.start("flood", command["flood"])
        elif "calm" in command:
            sender.calm()
        elif "block" in command:
            application.block = command["block"]
        elif "ask" in command:
            report(told=application.views, stats=group.stats())
        elif "leave" in command:
            group.leave()
            taker.join()
            report(left=group.closed, past=application.past)
            return


if __name__ == "__main__":
    main()
