"""A member in a process of its own that sends and gets large messages, and says what they were.

Commands come as JSON lines: {"spec": TOML} first, then {"send": sizes}, {"block": seconds} (the
application takes nothing meanwhile), {"ask": true}. Reports go out so: {"joined", "endpoint"},
{"view": names}, {"got": the digest of a message, "size", "from"}, {"sent": digests, "grown": bytes
that the process has grown by at its peak, besides the messages}, {"progress": done, "total",
"from"}, {"event": its name, "what"}, {"told": stats}.
"""

import json
import random
import resource
import sys
import threading
from hashlib import blake2b

from ringcast import Batch, Progress, StackSpec, View, ViewChange, sync
from tests.runtime.waiting import block


def report(**what: object) -> None:
    """Say something to the test."""
    with _out:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


_out = threading.Lock()


def digest(payload: bytes | memoryview) -> str:
    """What stands for a message."""
    return blake2b(payload, digest_size=8).hexdigest()


def make(seed: str, size: int) -> bytes:
    """A message; random bytes for all of it would keep the interpreter from all other threads."""
    block = random.Random(seed).randbytes(1_000_003)
    return (block * (size // len(block) + 1))[:size]


def peak() -> int:
    """The most memory that the process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Application:
    """Takes everything that comes."""

    def __init__(self, group: sync.Group) -> None:
        self.block = 0.0
        self._group = group
        self._view: View | None = None

    def run(self) -> None:
        """Until the group is left."""
        for event in self._group.events():
            if isinstance(event, Batch):
                self._on_batch(event)
            elif isinstance(event, ViewChange):
                self._view = event.view
                report(view=[peer.name for peer in event.view.peers])
            elif isinstance(event, Progress):
                name = self._name(event)
                report(progress=event.done, total=event.total, **{"from": name})
            else:
                report(event=type(event).__name__, what=str(event))

    def _on_batch(self, batch: Batch) -> None:
        if self.block:
            seconds, self.block = self.block, 0.0
            report(blocked=seconds)
            block(seconds)
        for payload in batch.payloads:
            report(got=digest(payload), size=len(payload), **{"from": self._name(batch)})

    def _name(self, event: Batch | Progress) -> str:
        assert self._view is not None
        return self._view.name(event.sender)


def send(group: sync.Group, sizes: list[int]) -> None:
    """Send messages of these sizes, each with other bytes."""
    messages = [make(f"{group.name} {number}", size) for number, size in enumerate(sizes)]
    before = peak()
    for message in messages:
        group.send(memoryview(message))
    report(sent=[digest(message) for message in messages], grown=peak() - before)


def main() -> None:
    """Join, and do what is asked for."""
    name, member = sys.argv[1:3]
    spec = StackSpec.from_toml(json.loads(sys.stdin.readline())["spec"])
    group = sync.join(name, spec, name=member, timeout=60.0)
    report(joined=str(group.me), endpoint=group.endpoint)
    application = Application(group)
    threading.Thread(target=application.run, daemon=True).start()
    for line in sys.stdin:
        command = json.loads(line)
        if "send" in command:
            send(group, command["send"])
        elif "block" in command:
            application.block = command["block"]
            report(ready=True)
        elif "ask" in command:
            report(told=group.stats())


if __name__ == "__main__":
    main()
