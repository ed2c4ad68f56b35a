"""Work without a scheduler: of n members, the one at place i of the view does task k if k % n is i.

python examples/work_distribution.py SHOP NAME      in several terminals; what is typed is a task,
    and an empty line or Ctrl-C leaves

A task comes in the same view to all, so all members agree on its owner without asking. When members
come or go, the tasks that are not done are shared anew: one that was under way may be done twice.
"""

import json
import sys
import threading
from contextlib import suppress

import ringcast
from ringcast import sync

tasks: dict[str, tuple[int, str]] = {}
"""What is to be done: who gave it and which one it was → its number and its text."""


def work(group: sync.Group) -> None:
    """Follow what happens to the tasks, and to the group; do this member's share."""
    view = group.view
    for event in group.events():
        mine: list[str] = []
        if isinstance(event, ringcast.ViewChange):
            view, mine = event.view, list(tasks)
        elif isinstance(event, ringcast.Batch):
            for message in event:
                id, number, text, worker = json.loads(message.payload)
                if worker:
                    tasks.pop(id, None)
                    print(f"{worker} has done {text}")
                else:
                    tasks[id] = (number, text)
                    mine.append(id)
        for id in mine:
            number, text = tasks.get(id, (0, ""))
            if text and view.members[number % len(view)] == group.me:
                group.send(json.dumps([id, number, text, group.name]).encode())


def main(shop: str, name: str) -> None:
    """Join, get the tasks that are not done, do some and give some."""
    number = 0
    joining = sync.join(
        f"shop-{shop}", name=name, state=True, on_state_request=lambda: json.dumps(tasks).encode()
    )
    with joining as group, suppress(KeyboardInterrupt):
        tasks.update(json.loads(group.state() or b"{}"))
        threading.Thread(target=work, args=[group]).start()
        print(f"* {name} is here")
        while text := sys.stdin.readline().strip():
            group.send(json.dumps([f"{name}-{number}", number, text, ""]).encode())
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
