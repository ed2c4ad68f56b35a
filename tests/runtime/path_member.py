"""A member of a group on a bridge: it sends or counts messages, and does what its input says.

Each line that it prints is one JSON object: what it has, and how large its datagrams are.
"""

import json
import logging
import sys
import threading

from ringcast import presets, sync
from ringcast.core.model.batch import Batch
from ringcast.errors import Timeout


class Sentences(logging.Handler):
    """Keeps the sentences about datagrams."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        facts = getattr(record, "ringcast", {})
        if facts.get("event") == "resized":
            self.said.append(record.getMessage())


def main(role: str, group_name: str, address: str) -> None:
    sentences = Sentences()
    log = logging.getLogger("ringcast")
    log.addHandler(sentences)
    log.setLevel(logging.INFO)
    spec = presets.lan(address).replace("Discovery", timeout=1.0)
    with sync.join(group_name, spec, name=role, timeout=60) as group:
        got = 0
        is_over = threading.Event()

        def receive() -> None:
            nonlocal got
            while not is_over.is_set():
                try:
                    events = group.take(timeout=0.2)
                except Timeout:
                    continue
                got += sum(len(event) for event in events if isinstance(event, Batch))

        taker = threading.Thread(target=receive)
        taker.start()
        for line in sys.stdin:
            word, _, number = line.partition(" ")
            if word == "send":
                group.send_many([bytes(132)] * int(number), timeout=60)
            stats = group.stats()
            state = {
                "members": len(group.view),
                "got": got,
                **stats["wire"],
                "said": sentences.said,
                "counters": stats["counters"],
            }
            print(json.dumps(state), flush=True)
        is_over.set()
        taker.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
