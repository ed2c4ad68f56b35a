"""A file of up to 256 MB to all receivers on this machine at once, however many there are.

python examples/send_file.py GROUP take DIRECTORY      takes a file
python examples/send_file.py GROUP send FILE COUNT     sends one as soon as COUNT others are there

It is sent once, by multicast, and each taker acks it as a whole. One that is too slow for the rest
is passed over after a while and told so, as the sender is. Between machines: presets.bulk() as is.
"""

import asyncio
import mmap
import sys
from pathlib import Path

import ringcast
from ringcast import events, presets
from ringcast.control.discovery import Discovery
from ringcast.transports import Udp

SPEC = presets.bulk().replace(Udp(bind="127.0.0.1"), Discovery(timeout=0.1, interval=0.02))


async def take(group: ringcast.Group, directory: Path) -> None:
    """Write what comes to the directory: the first message is the name, the second the file."""
    names: list[str] = []
    async for event in group.events():
        if isinstance(event, events.Progress):
            print(f"  {event.done:,} of {event.total:,} bytes")
        elif isinstance(event, ringcast.Skipped):
            sys.exit(f"* it did not come: {event.reason}")
        elif isinstance(event, ringcast.Batch):
            for message in event:
                if names:
                    (directory / names[0]).write_bytes(message.payload)
                    print(f"* {names[0]} is here, {len(message.payload):,} bytes")
                    return
                names.append(Path(message.payload.decode()).name)


async def send(group: ringcast.Group, path: Path, count: int) -> None:
    """Send a file; it is sent when its own sender receives it, like every member."""
    with path.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    async for event in group.events():
        if isinstance(event, ringcast.ViewChange) and len(event.view) == count + 1:
            await group.send_many([path.name.encode(), content])
        elif isinstance(event, events.Undelivered):
            print(f"* not sent to {', '.join(map(group.view.name, event.members))}")
        elif isinstance(event, ringcast.Batch) and len(event.payloads[-1]) == len(content):
            return  # Leaving waits until the others have it.


async def main(name: str, verb: str, path: str, count: str = "1") -> None:
    """Join, and take or send a file."""
    async with ringcast.join(f"files-{name}", SPEC, name=verb) as group:
        await (send(group, Path(path), int(count)) if verb == "send" else take(group, Path(path)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]) if len(sys.argv) > 3 else sys.exit(__doc__))
