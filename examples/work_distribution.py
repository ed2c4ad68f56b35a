"""Work without a scheduler: of n members, the one at place i of the view does task k if k % n is i.

python examples/work_distribution.py SHOP NAME      in several terminals; what is typed is a task

A task comes in the same view to all, so all members agree on its owner without asking. When members
come or go, the tasks that are not done are shared anew: one that was under way may be done twice.
"""

import asyncio
import json
import sys

import ringcast

tasks: dict[str, tuple[int, str]] = {}
"""What is to be done: who gave it and which one it was → its number and its text."""


async def work(group: ringcast.Group) -> None:
    """Follow what happens to the tasks, and to the group; do this member's share."""
    view = group.view
    async for event in group.events():
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
                await group.send(json.dumps([id, number, text, group.name]).encode())


async def main(shop: str, name: str) -> None:
    """Join, get the tasks that are not done, do some and give some."""
    number = 0
    async with ringcast.join(
        f"shop-{shop}", name=name, state=True, on_state_request=lambda: json.dumps(tasks).encode()
    ) as group:
        tasks.update(json.loads(await group.state() or b"{}"))
        working = asyncio.create_task(work(group))
        print(f"* {name} is here")
        while text := (await asyncio.to_thread(sys.stdin.readline)).strip():
            await group.send(json.dumps([f"{name}-{number}", number, text, ""]).encode())
            number += 1
    await working


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit(__doc__))
