"""Chat without a server: all processes that run this on one machine are in the room.

python examples/chat.py ROOM NAME          in several terminals; an empty line or Ctrl-C leaves
python examples/chat.py ROOM NAME --lan    with all members on the network
"""

import sys
import threading
from contextlib import suppress

import ringcast
from ringcast import presets, sync
from ringcast.transports import Udp


def listen(group: sync.Group) -> None:
    """Print joins, leaves and messages."""
    names: dict[ringcast.Address, str] = {}
    for event in group.events():
        match event:
            case ringcast.ViewChange(view, joined, left):
                names.update({peer.address: peer.name for peer in view.peers})
                for member in joined:
                    print(f"* {names[member]} is here")
                for member in left:
                    print(f"* {names[member]} has gone")
            case ringcast.Batch():
                for message in event:
                    if message.sender != group.me:
                        print(f"{names[message.sender]}: {message.payload.decode()}")
            case _:
                print(f"* {event}")


def speak(group: sync.Group) -> None:
    """Send each line that is typed, until an empty one."""
    while line := sys.stdin.readline().strip():
        group.send(line.encode())


def main(room: str, name: str, *options: str) -> None:
    """Join, talk, leave."""
    spec = presets.lan().replace(Udp(bind="")) if "--lan" in options else presets.loopback()
    with sync.join(f"chat-{room}", spec, name=name) as group, suppress(KeyboardInterrupt):
        threading.Thread(target=listen, args=[group]).start()
        speak(group)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
