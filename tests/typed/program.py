"""A program as a user writes it: `mypy --strict` and pyright accept it without a cast."""

import asyncio
import json

import ringcast
from ringcast import Batch, Merged, Message, Outcome, ViewChange, presets, sync
from ringcast.protocols import SlowMembers
from ringcast.sim import World
from ringcast.transports import Udp

prices: dict[str, float] = {}


def snapshot() -> bytes:
    return json.dumps(prices).encode()


async def answer(message: Message) -> bytes:
    return message.payload.upper()


async def main() -> None:
    spec = presets.lan().replace(Udp(bind="eth0"), SlowMembers(policy="evict"))
    async with ringcast.join(
        "prices", spec, state=True, on_state_request=snapshot, on_call=answer
    ) as group:
        prices.update(json.loads(await group.state() or b"{}"))
        await group.send_many([b"a", b"b"], timeout=1.0)
        replies = await group.call(b"load?", timeout=2.0)
        texts: list[str] = [payload.decode() for payload in replies.answers.values()]
        busy = [member for member, reply in replies.items() if reply.outcome is Outcome.BUSY]
        async for event in group.events():
            if isinstance(event, Batch):
                for payload in event.payloads:
                    prices.update(json.loads(payload))
            elif isinstance(event, ViewChange):
                print(event.view.name(group.me), texts, busy)
            elif isinstance(event, Merged):
                print(event.subgroups)
        sent: int = group.stats()["counters"].get("resent", 0)
        print(sent, ringcast.__version__)


def blocking() -> None:
    with sync.join("prices", presets.tcp(seeds=["127.0.0.1:7800"])) as group:
        message = group.receive(timeout=1.0)
        text: str = message.payload.decode()
        print(message.sender, message.seqno, text)


def simulated() -> list[bytes]:
    world = World(seed=7, spec=presets.lan(), loss=0.1)
    a, b = world.join("a", "b")
    a.send(b"x")
    world.settle()
    return [message.payload for message in b.delivered]


if __name__ == "__main__":
    asyncio.run(main())
