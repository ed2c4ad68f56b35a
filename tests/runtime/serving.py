"""Applications for tests of calls and states: they take what comes, and answer."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import ringcast
from ringcast import Message, StackSpec, sync
from ringcast.runtime.api.handlers import OnCall
from tests.runtime.support import SOON, group_name


def echo(message: Message) -> bytes:
    """Answer with the question."""
    return b"echo:" + bytes(message.payload)


async def serve(group: ringcast.Group) -> None:
    """An application that has nothing to do but to answer."""
    async for _ in group:
        pass


def drain(group: sync.Group) -> None:
    """The same, without an event loop."""
    for _ in group:
        pass


@asynccontextmanager
async def servers(
    count: int, spec: StackSpec, on_call: OnCall = echo
) -> AsyncIterator[list[ringcast.Group]]:
    """This many members that answer calls, in one view."""
    name = group_name()
    async with AsyncExitStack() as stack:
        groups = [
            await stack.enter_async_context(
                ringcast.join(name, spec, name=f"m{n}", on_call=on_call)
            )
            for n in range(count)
        ]
        for group in groups:
            while len(group.view) < count:
                await anext(group.events(timeout=SOON))
        yield groups
