"""A dictionary that all processes running this on one machine share; a joiner receives its state.

python examples/replicated_dictionary.py DICTIONARY NAME      in several terminals, then
    colour=blue      sets a key; all members show it
    colour           shows what is here; an empty line leaves

One sender's messages come in the same order everywhere, those of two need not. So each entry has a
version and an author, and of two entries for a key the higher one stays, at every member the same.
"""

import asyncio
import json
import sys

import ringcast

entries: dict[str, list[str | int]] = {}
"""Key → version, author and value."""


async def follow(group: ringcast.Group) -> None:
    """Put what others and this member have sent, unless there is something higher."""
    async for message in group:
        key, entry = json.loads(message.payload)
        entries[key] = max(entry, entries.get(key, entry))
        print(f"{key} is {entries[key][2]}")


async def edit(group: ringcast.Group) -> None:
    """Set or show what is typed, until an empty line."""
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        key, is_set, value = line.partition("=")
        version, _, known = entries.get(key, [0, "", "not there"])
        if is_set:
            entry = [int(version) + 1, group.name, value]
            await group.send(json.dumps([key, entry]).encode())
        else:
            print(f"here {key} is {known}")


async def main(dictionary: str, name: str) -> None:
    """Join, load the state, keep it up to date, and provide it to later joiners."""
    joining = ringcast.join(
        f"dictionary-{dictionary}",
        name=name,
        state=True,
        on_state_request=lambda: json.dumps(entries).encode(),
    )
    async with joining as group:
        entries.update(json.loads(await group.state() or b"{}"))
        print(f"* {name} has {len(entries)} entries")
        following = asyncio.create_task(follow(group))
        await edit(group)
    await following


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit(__doc__))
