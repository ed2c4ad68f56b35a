"""A member in a process of its own, for tests: commands come as JSON lines, reports go out so.

The first command is {"spec": TOML}. Then: {"send": count, "size": bytes}, {"block": seconds} (the
application takes nothing meanwhile), {"leave": true}.

Reports: {"joined", "endpoint"}, {"view": names, "id"}, {"got": count of messages so far, "from":
name, "in_order"}, {"sent": count}, {"event": its name}, {"left"}.
"""

import json
import sys
import threading
from collections import defaultdict

from ringcast import Batch, StackSpec, ViewChange, sync
from ringcast.core.address import Address

REPORT_EVERY = 100


def report(**what: object) -> None:
    """Say something to the test."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Application:
    """Takes everything that comes and checks that it is in order."""

    def __init__(self, group: sync.Group) -> None:
        self.group = group
        self.block = 0.0
        self._count: dict[Address, int] = defaultdict(int)
        self._last: dict[Address, int] = {}
        self._names: dict[Address, str] = {}

    def run(self) -> None:
        """Until the group is left."""
        for event in self.group.events():
            if self.block:
                seconds, self.block = self.block, 0.0
                report(blocked=seconds)
                threading.Event().wait(seconds)
            if isinstance(event, Batch):
                self._on_batch(event)
            elif isinstance(event, ViewChange):
                self._names.update({p.address: p.name for p in event.view.peers})
                report(view=[p.name for p in event.view.peers], id=str(event.view.id))
            else:
                report(event=type(event).__name__, what=str(event))

    def _on_batch(self, batch: Batch) -> None:
        before = self._count[batch.sender]
        in_order = batch.first == self._last.get(batch.sender, batch.first - 1) + 1
        self._last[batch.sender] = batch.last
        self._count[batch.sender] += len(batch)
        after = self._count[batch.sender]
        if not in_order or before // REPORT_EVERY != after // REPORT_EVERY:
            name = self._names.get(batch.sender, "?")
            report(got=after - after % REPORT_EVERY, **{"from": name, "in_order": in_order})


def send(group: sync.Group, count: int, size: int) -> None:
    """Send so many messages, in runs."""
    payload = bytes(size)
    for begin in range(0, count, REPORT_EVERY):
        group.send_many([payload] * min(REPORT_EVERY, count - begin))
    report(sent=count)


def main() -> None:
    """Join, and do what is asked for."""
    name, member = sys.argv[1:3]
    spec = StackSpec.from_toml(json.loads(sys.stdin.readline())["spec"])
    group = sync.join(name, spec, name=member)
    report(joined=str(group.me), endpoint=group.endpoint)
    application = Application(group)
    threading.Thread(target=application.run, daemon=True).start()
    for line in sys.stdin:
        command = json.loads(line)
        if "send" in command:
            send(group, command["send"], command.get("size", 100))
        elif "block" in command:
            application.block = command["block"]
        elif "leave" in command:
            group.leave()
            report(left=group.closed)
            return


if __name__ == "__main__":
    main()
