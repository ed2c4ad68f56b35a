"""What the application gave a stack, until the multicast has numbered it: layers between may change
payloads, and a trace sums up what was given, not what was sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ringcast.core.model.batch import FRAGMENT, INTERNAL, Batch, Payload
from ringcast.core.wire.fragments import Fragments, read_header


class Given:
    """Messages to the group that were given and not sent yet, in order."""

    def __init__(self) -> None:
        self._runs: deque[Sequence[Payload]] = deque()

    def add(self, payloads: Sequence[Payload]) -> None:
        """The application has given these."""
        self._runs.append(payloads)

    def take(self, run: Batch) -> Sequence[Payload]:
        """The messages that a run carries, as they were given; of fragments those that end."""
        if run.flags & INTERNAL:
            return run.payloads
        count = _ends(run.payloads) if run.flags & FRAGMENT else len(run)
        if self._runs and len(self._runs[0]) == count:
            return self._runs.popleft()
        taken: list[Payload] = []
        while self._runs and len(taken) < count:
            head = self._runs.popleft()
            wanted = count - len(taken)
            taken += head[:wanted]
            if len(head) > wanted:
                self._runs.appendleft(head[wanted:])
        return taken


def _ends(fragments: Sequence[Payload]) -> int:
    """How many messages end among these fragments."""
    if isinstance(fragments, Fragments):
        return int(fragments.is_end)
    headers = map(read_header, fragments)
    return sum(h is not None and h.index == h.count - 1 for h in headers)
