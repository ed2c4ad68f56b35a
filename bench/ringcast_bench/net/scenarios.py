"""What `ringcast bench net` measures: every scenario with its rows, and what is aimed at."""

from __future__ import annotations

from typing import Any

from ringcast import StackSpec, presets
from ringcast.control.slow_members import SlowMembers
from ringcast_bench.net.network import KB, MBIT, LinkChange, Network
from ringcast_bench.scenarios import Goal, Row, Scenario

LAN = presets.lan()
OFF = Network(offload=False)
SECONDS, SECONDS_QUICK = 8, 2


def ringcast(who: str, network: Network | None = None, **settings: Any) -> Row:
    """A row of Ringcast."""
    spec: StackSpec = settings.pop("spec", LAN)
    return Row(who=who, contestant="ringcast", spec=spec, network=network or Network(), **settings)


def raw(who: str, contestant: str, network: Network | None = None, **settings: Any) -> Row:
    """A row of bare sockets."""
    return Row(who=who, contestant=contestant, kind="raw", network=network or Network(), **settings)


def scenario(
    name: str, title: str, *rows: Row, goals: tuple[Goal, ...], **settings: Any
) -> Scenario:
    """A scenario that takes some seconds per run."""
    times = {"count": SECONDS, "quick": SECONDS_QUICK} | settings
    return Scenario(name=name, title=title, rows=rows, goals=goals, **times)


def least(who: str, figure: str, value: float) -> Goal:
    """A goal for a figure by itself."""
    return Goal(who=who, against="", figure=figure, least=value)


def most(who: str, figure: str, value: float) -> Goal:
    """The same with an upper bound."""
    return Goal(who=who, against="", figure=figure, most=value)


CLEAN = scenario(
    "clean",
    "1 sender, 3 receivers, 1,000 bytes, MTU 1,500, nothing lost",
    raw("raw, offload", "raw-offload"),
    raw("raw, one call per datagram", "raw-datagrams"),
    raw("raw, IP fragments", "raw-fragments"),
    raw("raw, TCP", "raw-tcp"),
    ringcast("ringcast"),
    raw("raw, no offload", "raw-offload", OFF),
    raw("raw, one call, no offload", "raw-datagrams", OFF),
    ringcast("ringcast, no offload", OFF),
    goals=(
        Goal(against="raw, offload", least=0.35),
        Goal(who="ringcast, no offload", against="raw, one call, no offload", least=0.7),
        most("ringcast", "views", 0),
    ),
)


def lossy(permille: int) -> Network:
    """A network that loses packets at each member."""
    return Network(offload=False, permille=permille)


def overhead_max(permille: int) -> float:
    """Bytes sent per byte of messages that are allowed with this loss at three receivers."""
    return 1.2 * (1 + 3 * permille / 1_000)


LOSS = scenario(
    "loss",
    "1 sender, 3 receivers, 1,000 bytes, packets lost at each member, no offload",
    ringcast("no loss", OFF),
    ringcast("0.1 %", lossy(1)),
    ringcast("1 %", lossy(10)),
    ringcast("5 %", lossy(50)),
    ringcast("20 %", lossy(200)),
    goals=(
        Goal(who="0.1 %", against="no loss", least=0.8),
        Goal(who="1 %", against="no loss", least=0.6),
        Goal(who="5 %", against="no loss", least=0.3),
        least("20 %", "rate", 1),
        most("0.1 %", "overhead", overhead_max(1)),
        most("1 %", "overhead", overhead_max(10)),
        most("5 %", "overhead", overhead_max(50)),
    ),
)


def links(name: str, text: str, rate: int) -> Scenario:
    """Links of one rate, with a long and a short queue, at the receivers and at the sender."""
    rows = {
        "300 KB": Network(rate=rate, queue=300 * KB),
        "64 KB": Network(rate=rate, queue=64 * KB),
        "300 KB, sender": Network(sender_rate=rate, queue=300 * KB),
        "64 KB, sender": Network(sender_rate=rate, queue=64 * KB),
    }
    goals = [
        goal
        for who in rows
        for goal in (
            least(who, "used", 0.85),
            most(who, "overhead", 1.15),
            most(who, "views", 0),
            most(who, "suspicions", 0),
        )
    ]
    return scenario(
        name,
        f"1 sender, 3 receivers, 1,000 bytes, links of {text} at receivers or sender, by queue",
        raw("raw, TCP, 300 KB", "raw-tcp", rows["300 KB"]),
        *(ringcast(who, network) for who, network in rows.items()),
        goals=tuple(goals),
        count=12,
    )


LINKS = (
    links("link-1g", "1 Gbit/s", 1_000 * MBIT),
    links("link-200m", "200 Mbit/s", 200 * MBIT),
    links("link-20m", "20 Mbit/s", 20 * MBIT),
    links("link-2m", "2 Mbit/s", 2 * MBIT),
)


def policy(name: str) -> StackSpec:
    """The stack with a policy for slow members."""
    return LAN.insert(SlowMembers(policy=name, bound=0.2))


WIDE = Network(rate=1_000 * MBIT)
UNEVEN = Network(rate=1_000 * MBIT, last_rate=20 * MBIT)
WITHOUT_LAST = Network(rate=1_000 * MBIT, last_rate=20 * MBIT, apart=True)

SLOW_LINK = scenario(
    "slow-link",
    "1 sender, 3 receivers, 1,000 bytes, links of 1 Gbit/s; that of one receiver 20 Mbit/s",
    ringcast("all 1 Gbit/s", WIDE, spec=policy("skip")),
    ringcast("wait", UNEVEN, spec=policy("wait")),
    ringcast("skip", WITHOUT_LAST, spec=policy("skip")),
    ringcast("evict", WITHOUT_LAST, spec=policy("evict")),
    goals=(
        least("wait", "used", 0.85),
        Goal(who="skip", against="all 1 Gbit/s", least=0.8),
        Goal(who="evict", against="all 1 Gbit/s", least=0.8),
    ),
    count=12,
)

CHANGING = Network(
    rate=200 * MBIT,
    changes=(LinkChange(at=1 / 3, rate=20 * MBIT), LinkChange(at=2 / 3, rate=200 * MBIT)),
)

CHANGE = scenario(
    "change",
    "1 sender, 3 receivers, 1,000 bytes, links of 200, then 20, then 200 Mbit/s",
    raw("raw, TCP", "raw-tcp", CHANGING),
    ringcast("ringcast", CHANGING),
    goals=(
        least("ringcast", "used_down", 0.8),
        least("ringcast", "used_up", 0.8),
        most("ringcast", "views", 0),
    ),
    count=30,
    quick=6,
)

SHARED = Network(rate=200 * MBIT)

FAIR = scenario(
    "fair",
    "two groups, or a group and a TCP flow, of 1 sender and 1 receiver, on one 200 Mbit/s link",
    raw("raw, two TCP flows", "raw-tcp", SHARED, beside="raw-tcp"),
    ringcast("two groups", SHARED, beside="ringcast"),
    ringcast("beside TCP", SHARED, beside="raw-tcp"),
    goals=(
        least("two groups", "jain", 0.9),
        least("beside TCP", "share", 0.25),
        most("beside TCP", "share", 4.0),
    ),
    receivers=1,
    count=20,
    quick=3,
)

ALL_TO_ALL = scenario(
    "4-4",
    "4 members that all send to all, 1,000 bytes, MTU 1,500, nothing lost",
    raw("raw, IP fragments", "raw-everybody"),
    ringcast("ringcast"),
    goals=(most("ringcast", "views", 0),),
    play="everybody",
    senders=4,
    receivers=4,
)

BULK = presets.bulk()

LARGE = scenario(
    "bulk",
    "1 sender, 3 receivers, messages of 100 MB by the preset bulk, packets lost, no offload",
    ringcast("no loss", OFF, spec=BULK, api="sync"),
    ringcast("0.1 %", lossy(1), spec=BULK, api="sync"),
    ringcast("1 %", lossy(10), spec=BULK, api="sync"),
    goals=(
        Goal(who="0.1 %", against="no loss", least=0.6),
        Goal(who="1 %", against="no loss", least=0.6),
    ),
    size=100_000_000,
    count=30,
    quick=6,
)

MTU = scenario(
    "mtu",
    "1 sender, 3 receivers, 1,000 bytes, MTUs that differ, shrink, or are not what they seem",
    ringcast("all 9,000", Network(mtu=9_000)),
    ringcast("9,000 and 1,500", Network(mtu=9_000, last_mtu=1_500, last_port_mtu=1_500)),
    ringcast("receiver 1,500, then 1,300", Network(changes=(LinkChange(at=0.5, mtu=1_300),))),
    ringcast("sender 1,500, then 1,300", Network(changes=(LinkChange(at=0.5, sender_mtu=1_300),))),
    ringcast("9,000, path of 1,500", Network(mtu=9_000, last_port_mtu=1_500)),
    goals=(
        least("9,000 and 1,500", "late", 1),
        least("receiver 1,500, then 1,300", "late", 1),
        least("sender 1,500, then 1,300", "late", 1),
        least("9,000, path of 1,500", "late", 1),
    ),
)

SCENARIOS = (CLEAN, LOSS, *LINKS, SLOW_LINK, CHANGE, FAIR, ALL_TO_ALL, LARGE, MTU)
"""All of them, in the order in which they are run."""
