"""What is measured: every scenario with its rows and goals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ringcast import StackSpec, presets
from ringcast.control.slow_members import SlowMembers
from ringcast.layers.compress.layer import Compress
from ringcast.layers.faults import Faults
from ringcast.transports import Udp
from ringcast_bench.net.network import Network

RATE = "rate"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One contestant of a scenario."""

    who: str
    """What it is called in the table; once in a scenario."""
    contestant: str
    """What runs it: a name of `child.CONTESTANTS`."""
    kind: str = "ringcast"
    """"ringcast", "raw" or "peer"."""
    share: float = 1.0
    """The part of the scenario's messages that it gets, so that slow ones end in time too."""
    api: str = "batch"
    """"batch", "sync", "async"; "struct" for the bare pair."""
    spec: StackSpec | None = None
    pause: float = 0.0
    """Seconds per message that the last receiver takes; the run does not wait for it."""
    firewall: int = 0
    """Per cent of all datagrams that the firewall of the namespace drops."""
    flood: str = ""
    """What strangers send meanwhile: a kind of `flood.KINDS`, or it elsewhere; empty for none."""
    to_all: bool = False
    """Whether pings go to all members."""
    random: bool = False
    """Whether messages have nothing in common, as encrypted ones."""
    trace: bool = False
    """Whether members write their traces."""
    closed: bool = False
    """Whether the group is closed: every datagram is sealed."""
    viewer: str = ""
    """"looks": one more member shows the group as `ringcast ui` does; "idle": it only joins."""
    network: Network | None = None
    """What happens on the bridge, in scenarios of `ringcast bench net`."""
    beside: str = ""
    """The contestant of a second group on the same link, of one sender and one receiver."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a figure should be, as a ratio to the same figure of another row."""

    who: str = "ringcast"
    against: str = "raw"
    """The name of a row, "peers" for the best of them, or "" when the figure counts by itself."""
    figure: str = RATE
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A measurement with its rows, which are run one after the other."""

    name: str
    title: str
    rows: tuple[Row, ...]
    goals: tuple[Goal, ...] = ()
    play: str = "stream"
    """"stream", "everybody", "ping", "join", "form" or "idle". On a bridge, "stream" and
    "everybody" go on for `count` seconds."""
    senders: int = 1
    receivers: int = 3
    size: int = 1_000
    count: int
    quick: int
    """The count for a short run, which shows that all works and no more."""


RAW = Row(who="raw", contestant="raw-multicast", kind="raw")
RAW_STRUCT = Row(who="raw, struct", contestant="raw-multicast", kind="raw", api="struct")
"""The same with messages cut by a struct, as the codec does it, and not by a slice each."""
RAW_TCP = Row(who="raw", contestant="raw-tcp", kind="raw")
RAW_LARGE = Row(who="raw", contestant="raw-large", kind="raw")
RAW_PING = Row(who="raw", contestant="raw-ping", kind="raw", api="async")
ZMQ = Row(who="pyzmq", contestant="pyzmq", kind="peer", share=0.2)
ZENOH = Row(who="zenoh", contestant="zenoh", kind="peer", share=0.1)
NATS = Row(who="nats", contestant="nats", kind="peer", share=0.04)
REDIS = Row(who="redis", contestant="redis", kind="peer", share=0.04)
PEERS = (ZMQ, ZENOH, NATS, REDIS)

MULTICAST = presets.loopback()
TCP = presets.tcp(when_alone="create")
BULK = presets.bulk().replace(Udp())


def ringcast(who: str = "ringcast", spec: StackSpec = MULTICAST, **settings: Any) -> Row:
    """A row of Ringcast."""
    return Row(who=who, contestant="ringcast", spec=spec, **settings)


STREAMS = (
    Scenario(
        name="1-3-1k",
        title="1 sender, 3 receivers, 1,000 bytes, UDP multicast, send_many and batches()",
        rows=(RAW, RAW_STRUCT, ringcast(), *PEERS),
        goals=(Goal(least=0.8), Goal(against="peers", least=3.0)),
        count=1_200_000,
        quick=6_000,
    ),
    Scenario(
        name="1-3-100",
        title="the same with 100 bytes",
        rows=(RAW, RAW_STRUCT, ringcast(), *PEERS),
        goals=(Goal(least=0.6),),
        size=100,
        count=4_000_000,
        quick=20_000,
    ),
    Scenario(
        name="1-1-1k",
        title="1 sender, 1 receiver, 1,000 bytes, UDP multicast, send_many and batches()",
        rows=(RAW, ringcast(), *PEERS),
        goals=(Goal(least=0.8),),
        receivers=1,
        count=2_000_000,
        quick=6_000,
    ),
    Scenario(
        name="1-1-100",
        title="the same with 100 bytes",
        rows=(RAW, ringcast(), *PEERS),
        receivers=1,
        size=100,
        count=6_000_000,
        quick=20_000,
    ),
    Scenario(
        name="4-4-1k",
        title="4 members that all send to all, 1,000 bytes, UDP multicast, batches, in one loop",
        rows=(
            Row(who="raw", contestant="raw-everybody", kind="raw"),
            ringcast(api="async"),
            ringcast("ringcast, threads"),
        ),
        goals=(Goal(least=0.6),),
        play="everybody",
        senders=4,
        receivers=4,
        count=250_000,
        quick=3_000,
    ),
    Scenario(
        name="4-4-100",
        title="the same with 100 bytes",
        rows=(
            Row(who="raw", contestant="raw-everybody", kind="raw"),
            ringcast(api="async"),
            ringcast("ringcast, threads"),
        ),
        goals=(Goal(least=0.6),),
        play="everybody",
        senders=4,
        receivers=4,
        size=100,
        count=1_000_000,
        quick=10_000,
    ),
    Scenario(
        name="1-3-1k-each",
        title="1 sender, 3 receivers, 1,000 bytes, UDP multicast, message by message",
        rows=(
            ringcast("ringcast sync", api="sync"),
            ringcast("ringcast async", api="async", share=0.5),
            *PEERS,
        ),
        goals=(
            Goal(who="ringcast sync", against="pyzmq", least=2.0),
            Goal(who="ringcast async", against="pyzmq", least=1.0),
        ),
        count=600_000,
        quick=3_000,
    ),
    Scenario(
        name="1-3-1k-tcp",
        title="1 sender, 3 receivers, 1,000 bytes, TCP, send_many and batches()",
        rows=(RAW_TCP, ringcast(spec=TCP), *PEERS),
        goals=(Goal(least=0.6), Goal(against="pyzmq", least=1.0)),
        count=1_000_000,
        quick=6_000,
    ),
)

LARGE = (
    Scenario(
        name="1-3-10m",
        title="1 sender, 3 receivers, messages of 10 MB, UDP multicast",
        rows=(
            RAW_LARGE,
            ringcast(spec=BULK, api="sync"),
            ringcast("ringcast lan", api="sync"),
            *(replace(row, share=1.0) for row in PEERS),
        ),
        goals=(Goal(least=0.6), Goal(against="peers", least=1.0)),
        size=10_000_000,
        count=10,
        quick=2,
    ),
    Scenario(
        name="1-3-100m",
        title="1 sender, 3 receivers, messages of 100 MB, UDP multicast",
        rows=(
            RAW_LARGE,
            ringcast(spec=BULK, api="sync"),
            ringcast("ringcast lan", api="sync"),
            # NATS takes messages of 64 MB at the most, and Redis takes its time.
            *(replace(row, share=1.0) for row in (ZMQ, ZENOH)),
            replace(REDIS, share=0.2),
        ),
        goals=(
            Goal(least=0.6),
            Goal(against="peers", least=1.0),
            Goal(against="", figure="sender_messages", most=2.0),
        ),
        size=100_000_000,
        count=5,
        quick=1,
    ),
)


def lossy(percent: int) -> Row:
    """A row that loses datagrams at each receiver by itself."""
    return ringcast(f"{percent} %", MULTICAST.insert(Faults(loss=percent / 100)), share=0.5)


def walled(percent: int) -> Row:
    """A row for which the firewall drops datagrams, for all receivers alike."""
    return ringcast(f"{percent} %, firewall", firewall=percent, share=0.5)


def slow_row(who: str, policy: str, pause: float = 0.0) -> Row:
    """A row with a policy for slow members, and one that takes its time for each message."""
    return ringcast(who, MULTICAST.insert(SlowMembers(policy=policy, bound=0.2)), pause=pause)


TROUBLES = (
    Scenario(
        name="loss",
        title="1 sender, 3 receivers, 1,000 bytes, datagrams lost at each receiver",
        rows=(ringcast("no loss"), *map(lossy, (1, 5, 10)), *map(walled, (1, 5, 10))),
        goals=(
            Goal(who="5 %", against="no loss", least=0.5),
            Goal(who="10 %", against="no loss", least=0.35),
            Goal(who="5 %, firewall", against="no loss", least=0.5),
            Goal(who="10 %, firewall", against="no loss", least=0.35),
        ),
        count=800_000,
        quick=4_000,
    ),
    Scenario(
        name="slow",
        title="1 sender, 3 receivers, 1,000 bytes; one takes 0.1 ms a message",
        rows=(
            slow_row("nobody slow", "skip"),
            slow_row("skip", "skip", 1e-4),
            slow_row("evict", "evict", 1e-4),
        ),
        goals=(
            Goal(who="skip", against="nobody slow", least=0.8),
            Goal(who="evict", against="nobody slow", least=0.8),
        ),
        count=3_000_000,
        quick=40_000,
    ),
)


def flooded(kind: str, spec: StackSpec = MULTICAST) -> tuple[Row, Row]:
    """A row that strangers flood, and one beside a flood that no member hears."""
    return (
        ringcast(kind, spec, flood=kind),
        ringcast(f"{kind} elsewhere", spec, flood=f"{kind}-elsewhere"),
    )


FLOOD = Scenario(
    name="flood",
    title="1 sender, 3 receivers, 1,000 bytes, while strangers send 40,000 datagrams per second",
    rows=(
        *flooded("garbage"),
        *flooded("alive"),
        *flooded("discover"),
        *flooded("tcp", TCP),
    ),
    goals=tuple(
        Goal(who=kind, against=f"{kind} elsewhere", least=0.7)
        for kind in ("garbage", "alive", "discover", "tcp")
    ),
    count=800_000,
    quick=4_000,
)
"""What strangers take of the rate, besides the CPU that it takes them to send."""

ORDERED = MULTICAST.with_total_order()

ORDER = (
    Scenario(
        name="order-1-3-1k",
        title="1 sender, 3 receivers, 1,000 bytes, with and without total order",
        rows=(ringcast("without"), ringcast("total order", ORDERED)),
        goals=(Goal(who="total order", against="without", least=0.3),),
        count=600_000,
        quick=6_000,
    ),
    Scenario(
        name="order-4-4-1k",
        title="4 members that all send to all, 1,000 bytes, with and without total order",
        rows=(ringcast("without", api="async"), ringcast("total order", ORDERED, api="async")),
        goals=(Goal(who="total order", against="without", least=0.3),),
        play="everybody",
        senders=4,
        receivers=4,
        count=125_000,
        quick=3_000,
    ),
)
"""What one order costs: the same groups with a sequencer and without."""

PACKED = MULTICAST.insert(Compress())

COMPRESS = (
    Scenario(
        name="compress-random",
        title="1 sender, 3 receivers, random bytes, 1,000 of them, with and without compression",
        rows=(ringcast("without", random=True), ringcast("Compress", PACKED, random=True)),
        goals=(Goal(who="Compress", against="without", least=0.9),),
        count=600_000,
        quick=6_000,
    ),
)
"""What it costs to try compression where nothing can be gained."""

OPEN_BULK, SEALED_BULK = (
    ringcast(who, BULK, api="sync", closed=closed)
    for who, closed in (("open", False), ("sealed", True))
)

SEALED = (
    Scenario(
        name="sealed-1-3-1k",
        title="1 sender, 3 receivers, 1,000 bytes, an open group beside a closed one",
        rows=(ringcast("open"), ringcast("sealed", closed=True)),
        goals=(Goal(who="sealed", against="open", least=0.5),),
        count=600_000,
        quick=6_000,
    ),
    Scenario(
        name="sealed-1-3-100",
        title="the same with 100 bytes",
        rows=(ringcast("open"), ringcast("sealed", closed=True)),
        goals=(Goal(who="sealed", against="open", least=0.8),),
        size=100,
        count=2_000_000,
        quick=20_000,
    ),
    Scenario(
        name="sealed-1-3-100m",
        title="the same with messages of 100 MB and the preset bulk",
        rows=(OPEN_BULK, SEALED_BULK),
        goals=(Goal(who="sealed", against="open", least=0.45),),
        size=100_000_000,
        count=5,
        quick=1,
    ),
)
"""What a key costs: the same groups with it and without."""

WATCHED = (
    Scenario(
        name="watched",
        title="1 sender, 3 receivers, 1,000 bytes, with a live view and without",
        rows=(
            ringcast("unwatched"),
            ringcast("one more member", viewer="idle"),
            ringcast("watched", viewer="looks"),
        ),
        goals=(
            Goal(who="watched", against="unwatched", least=0.99),
            Goal(who="watched", against="one more member", least=0.99),
        ),
        count=1_200_000,
        quick=6_000,
    ),
)
"""What the live view costs: the same load alone, with one more member, and with one that looks.
The viewer receives what all members receive, on the cores of this machine."""

MOMENTS = (
    Scenario(
        name="round-trip",
        title="a question to one member and its answer, 100 bytes, one at a time",
        rows=(RAW_PING, ringcast("ringcast async", api="async"), ringcast("ringcast sync")),
        goals=(
            Goal(who="ringcast sync", figure="p50", most=1.5),
            Goal(who="ringcast sync", figure="p99", most=3.0),
            Goal(who="ringcast async", figure="p50", most=1.5),
            Goal(who="ringcast async", figure="p99", most=3.0),
        ),
        play="ping",
        receivers=1,
        size=100,
        count=5_000,
        quick=100,
    ),
    Scenario(
        name="round-trip-all",
        title="a question to all and an answer to all, two members",
        rows=(
            RAW_PING,
            ringcast("ringcast async", api="async", to_all=True),
            ringcast("ringcast sync", to_all=True),
        ),
        play="ping",
        receivers=1,
        size=100,
        count=5_000,
        quick=100,
    ),
    Scenario(
        name="join",
        title="a fourth member joins a group of three",
        rows=(
            ringcast("loopback"),
            ringcast("lan", presets.lan(bind="127.0.0.1")),
            ringcast("tcp", TCP),
        ),
        play="join",
        senders=3,
        receivers=1,
        count=5,
        quick=1,
    ),
    Scenario(
        name="idle",
        title="four members that wait for messages, of which none come",
        rows=(ringcast("ringcast"), ringcast("ringcast tcp", TCP)),
        goals=(
            Goal(against="", figure="cpu_percent", most=1.0),
            Goal(against="", figure="rss", most=60e6),
        ),
        play="idle",
        senders=4,
        receivers=0,
        count=5,
        quick=1,
    ),
)

TRACE = Scenario(
    name="trace",
    title="1 sender, 3 receivers, 100 bytes, send_many and batches(), with and without a trace",
    rows=(ringcast("without"), ringcast("with", trace=True)),
    size=100,
    count=2_000_000,
    quick=20_000,
)
"""What it costs a member to write its trace; `ringcast bench trace` runs it."""

SCENARIOS = (*STREAMS, *LARGE, *SEALED, *TROUBLES, FLOOD, *ORDER, *COMPRESS, *WATCHED, *MOMENTS)
"""All of them, in the order in which they are run."""
