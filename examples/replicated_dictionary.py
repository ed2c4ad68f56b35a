"""A dictionary that all processes running this on one machine share; a joiner receives its state.

python examples/replicated_dictionary.py DICTIONARY NAME      in several terminals, then
    colour=blue      sets a key; all members show it
    colour           shows what is here; an empty line or Ctrl-C leaves

One sender's messages come in the same order everywhere, those of two need not. So each entry has a
version and an author, and of two entries for a key the higher one stays, at every member the same.
"""

import json
import sys
import threading
from contextlib import suppress

from ringcast import sync

entries: dict[str, list[str | int]] = {}
"""Key → version, author and value."""


def follow(group: sync.Group) -> None:
    """Put what others and this member have sent, unless there is something higher."""
    for message in group:
        key, entry = json.loads(message.payload)
        entries[key] = max(entry, entries.get(key, entry))
        print(f"{key} is {entries[key][2]}")


def edit(group: sync.Group) -> None:
    """Set or show what is typed, until an empty line."""
    while line := sys.stdin.readline().strip():
        key, is_set, value = line.partition("=")
        version, _, known = entries.get(key, [0, "", "not there"])
        if is_set:
            entry = [int(version) + 1, group.name, value]
            group.send(json.dumps([key, entry]).encode())
        else:
            print(f"here {key} is {known}")


def main(dictionary: str, name: str) -> None:
    """Join, load the state, keep it up to date, and provide it to later joiners."""
    joining = sync.join(
        f"dictionary-{dictionary}",
        name=name,
        state=True,
        on_state_request=lambda: json.dumps(entries).encode(),
    )
    with joining as group, suppress(KeyboardInterrupt):
        entries.update(json.loads(group.state() or b"{}"))
        print(f"* {name} has {len(entries)} entries")
        threading.Thread(target=follow, args=[group]).start()
        edit(group)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
