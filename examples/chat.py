"""Chat without a server: all processes that run this on one machine are in the room.

python examples/chat.py ROOM NAME          in several terminals; an empty line leaves
python examples/chat.py ROOM NAME --lan    with all members on the network
"""

import asyncio
import sys

import ringcast
from ringcast import presets
from ringcast.transports import Udp


async def listen(group: ringcast.Group) -> None:
    """Print joins, leaves and messages."""
    names: dict[ringcast.Address, str] = {}
    async for event in group.events():
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


async def speak(group: ringcast.Group) -> None:
    """Send each line that is typed, until an empty one."""
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await group.send(line.encode())


async def main(room: str, name: str, *options: str) -> None:
    """Join, talk, leave."""
    spec = presets.lan().replace(Udp(bind="")) if "--lan" in options else presets.loopback()
    async with ringcast.join(f"chat-{room}", spec, name=name) as group:
        listening = asyncio.create_task(listen(group))
        await speak(group)
    await listening


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
