"""Real groups for tests: stacks that notice crashes quickly, and groups of one process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ringcast import Batch, Event, StackSpec, Timeout, presets, sync
from ringcast.control.discovery import Discovery
from ringcast.control.failure_detector import FailureDetector
from ringcast.core.model.batch import Message
from ringcast.layers.faults import Faults
from ringcast.transports import Memory, Tcp, Udp

SOON = 15.0
"""Seconds after which something that has to happen soon counts as not happening."""

QUICK = FailureDetector(interval=0.1, timeout=0.6, verify=0.3)
"""A crash is noticed within about 1.1 seconds."""

ROOT = Path(__file__).resolve().parents[2]


def group_name() -> str:
    """A group that no other test is in."""
    return f"test-{uuid4()}"


# Stacks -------------------------------------------------------------------------------------------


def memory() -> StackSpec:
    """Members of one process."""
    return presets.loopback().replace(Memory(), QUICK)


def multicast() -> StackSpec:
    """UDP multicast on the loopback interface."""
    return presets.loopback().replace(QUICK)


def seeded(transport: Udp | Tcp, seed: str | None) -> StackSpec:
    """Members that are found by a seed; the first one has none."""
    found = Discovery(
        multicast=False,
        seeds=() if seed is None else (seed,),
        timeout=0.1,
        interval=0.05,
        merge_interval=0.5,
        when_alone="create" if seed is None else "wait",
    )
    return presets.loopback().replace(QUICK, found, transport)


def tcp(seed: str | None) -> StackSpec:
    """TCP on the loopback interface."""
    return seeded(Tcp(), seed)


def unicast(seed: str | None) -> StackSpec:
    """UDP without multicast."""
    return seeded(Udp(multicast=""), seed)


def ordered() -> StackSpec:
    """UDP multicast with total order, over a network that loses 5 % of the datagrams."""
    return multicast().with_total_order().insert(Faults(loss=0.05))


SPECS: dict[str, Callable[[str | None], StackSpec]] = {
    "memory": lambda seed: memory(),
    "multicast": lambda seed: multicast(),
    "tcp": tcp,
    "unicast": unicast,
    "ordered": lambda seed: ordered(),
}
"""Stacks for every transport, given the endpoint of a member that is there already."""


# Groups in this process ---------------------------------------------------------------------------


@contextmanager
def members(
    count: int, kind: str, key: bytes | None = None, **settings: object
) -> Iterator[list[sync.Group]]:
    """Members of one group, in one view."""
    name, joined = group_name(), list[sync.Group]()
    with ExitStack() as stack:
        for number in range(count):
            seed = joined[0].endpoint if joined else None
            spec = SPECS[kind](seed)
            if settings:
                spec = spec.replace(**settings)
            group = sync.join(name, spec, name=f"m{number}", timeout=SOON, key=key)
            stack.callback(group.close)
            joined.append(group)
        for group in joined:
            await_view(group, count)
        yield joined


def await_view(group: sync.Group, size: int) -> None:
    """Take events until the view has this many members. Raises ringcast.Timeout."""
    events = group.events(timeout=SOON)
    while len(group.view) != size:
        next(events)


def take(group: sync.Group, count: int) -> list[Message]:
    """The next messages."""
    return [group.receive(timeout=SOON) for _ in range(count)]


def take_bytes(group: sync.Group, count: int) -> list[bytes]:
    """What the next messages say."""
    return [bytes(message.payload) for message in take(group, count)]


def take_events(group: sync.Group, count: int) -> list[Event]:
    """The next events, until this many messages were among them."""
    taken: list[Event] = []
    for event in group.events(timeout=SOON):
        taken.append(event)
        count -= len(event) if isinstance(event, Batch) else 0
        if count <= 0:
            break
    return taken


def come_back(group: sync.Group) -> None:
    """Ask for more, so that what was taken counts as delivered; there must be no more."""
    with suppress(Timeout):
        message = group.receive(timeout=0.01)
        raise AssertionError(f"{message} came as well")


def numbered(prefix: str, count: int) -> list[bytes]:
    """Messages that say who sent them and which one it is."""
    return [f"{prefix}-{number}".encode() for number in range(count)]


@contextmanager
def running(target: Callable[[], None]) -> Iterator[threading.Thread]:
    """A thread beside the test, whose errors are the test's."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            target()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread
    thread.join(SOON)
    assert not thread.is_alive(), "the thread did not end"
    if failures:
        raise failures[0]
