"""A member in a process of its own that gives a state without an end, for tests that kill it.

python provider.py GROUP SPEC.toml: prints "ready" when it has joined, and "gives" with
each megabyte.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from ringcast import StackSpec, sync


def give() -> Iterator[bytes]:
    """Chunk by chunk, for ever."""
    while True:
        for _ in range(16):
            yield bytes(65_536)
        print("gives", flush=True)


def main(group: str, spec: str) -> None:
    """Join, and serve until killed."""
    stack = StackSpec.from_toml(Path(spec).read_text())
    with sync.join(group, stack, name="provider", on_state_request=give) as member:
        print("ready", flush=True)
        for _ in member:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
