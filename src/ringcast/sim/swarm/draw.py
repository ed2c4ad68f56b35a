"""Random stacks and networks for the swarm: settings at their edges, links good and bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random

from ringcast import presets
from ringcast.control.slow_members import SlowMembers
from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError
from ringcast.guarantees import promises_of
from ringcast.layers.compress.layer import Compress
from ringcast.layers.flow.layer import Flow
from ringcast.layers.large import LargeMessages
from ringcast.layers.majority import Majority
from ringcast.layers.pacing import Pacing
from ringcast.layers.sequencer import Sequencer
from ringcast.sim.swarm.hostile import STRANGER
from ringcast.spec import StackSpec

FIRST_NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")
"""Those that start first; the first two are the seeds where there is no multicast."""

PRESETS = ("lan", "lan", "lan", "stable", "stable", "loopback", "tcp", "bulk")

SETTINGS: Mapping[str, Mapping[str, Sequence[object]]] = {
    "multicast": {
        "capacity": (1, 2, 3, 7, 16, 64, 512, 16_384),
        "max_bytes": (100, 4_000, 4_000_000, 4_000_000),
        "xmit_interval": (0.02, 0.1, 0.1, 0.3),
        "request_delay": (0.0, 0.001, 0.01),
        "request_ranges": (1, 4, 512),
        "request_messages": (1, 16, 4_096),
        "answer": ("auto", "auto", "unicast", "multicast"),
        "loopback": (True, True, True, True, False),
        "early_frames": (0, 4, 256),
        "retain": (True, True, True, False),
        "ack_threshold": (1, 8, 1_024),
    },
    "wire": {"mtu": (512, 1_400, 60_000), "checksum": ("head", "full")},
    "discovery": {"merge_interval": (0.5, 2.0)},
    "membership": {"gather": (0.001, 0.02, 0.1), "change_timeout": (3.0, 10.0)},
    "failure": {"watchers": (1, 2, 3)},
}
"""Per role the settings that vary and their values; those that a protocol lacks are left out."""

BRAKES: Mapping[str, Mapping[str, Sequence[object]]] = {
    "large": {
        "ack_timeout": (0.1, 0.5),
        "attempts": (1, 3),
        "receive_timeout": (0.3, 3.0),
        "max_unacked": (1, 1_024),
        "max_waiting_bytes": (5_000, 512_000_000),
    },
    "fragment": {"frag_size": (100, 250), "progress_step": (0, 1_000)},
    "flow": {
        "max_credits": (300, 5_000, 100_000),
        "max_block_time": (0.3, 2.0),
        "max_block_times": ("", "", "100:20,1000:200"),
        "max_bytes": (300, 5_000, 100_000),
        "asked": (1, 2),
        "give_up": (0.01, 0.2),
    },
    "multicast": {"max_block_times": ("", "", "", "100:20,2000:300")},
    "slow": {"bound": (0.5, 2.0)},
}
"""The same for what makes senders wait, or go on."""

BUFFERS: Mapping[str, Mapping[str, Sequence[object]]] = {
    "multicast": {
        "flight_bytes": (500, 20_000, 4_000_000),
        "discard_delivered": (False, True),
    },
}
"""The same for what a multicast keeps and puts in flight."""

OTHERS: Mapping[str, Mapping[str, Sequence[object]]] = {
    "compress": {"algorithm": ("zlib", "auto"), "max_message": (20, 1_000, 16_000_000)},
    "fragment": {
        # One to the group and one to this member alone, of each of seven others.
        "max_incomplete": (14, 32, 256),
        # Longer than all faults together: a busy application may stop a sender as long.
        "incomplete_timeout": (150.0, 600.0),
    },
    "quorum": {"interval": (0.02, 0.1, 0.5)},
    "flow": {"ask_interval": (0.01, 0.1, 0.3)},
    "unicast": {
        "capacity": (1, 2, 3, 7, 16, 4_096),
        "max_bytes": (100, 4_000, 4_000_000),
        "ack_threshold": (1, 8, 256),
        "xmit_interval": (0.02, 0.1, 0.3),
        "request_delay": (0.0, 0.001, 0.01),
        "request_ranges": (1, 4, 512),
        "request_messages": (1, 16, 4_096),
        # More than lives in one run: with fewer, a message may come twice, as documented.
        "remembered_peers": (64, 1_024),
    },
    "stability": {"interval": (0.1, 0.5, 2.0), "max_bytes": (1, 2_000, 4_000_000)},
    "discovery": {
        "timeout": (0.1, 0.3, 1.0),
        "interval": (0.02, 0.06),
        # Not "fail", which raises, nor "wait" for all, which begins no group.
        "when_alone": ("auto", "create"),
    },
    "failure": {"verify_refused": (0.05, 0.15, 0.2), "pair_timeout": (0.3, 1.0, 3.0)},
    "membership": {
        "retry": (0.01, 0.05, 0.2),
        "retry_max": (0.2, 0.5, 1.0),
        "drain_timeout": (0.5, 5.0),
        "leave_timeout": (0.5, 5.0),
    },
    "path": {"raise_after": (0.5, 5.0, 60.0)},
}
"""The same for all other settings that a simulation knows."""

FRAGMENT_BOUNDS: Sequence[Mapping[str, object]] = (
    {"max_message": 5_100, "max_incomplete_bytes": 75_000},
    {"max_message": 100_000, "max_incomplete_bytes": 100_000},
    {"max_message": 256_000_000, "max_incomplete_bytes": 1_000_000_000},
)
"""Bounds that fit each other, and the largest message of all senders at once."""

FAILURE_TIMES = (
    {"interval": 0.1, "timeout": 0.5, "verify": 0.2},
    {"interval": 0.2, "timeout": 1.0, "verify": 0.3},
    {"interval": 0.5, "timeout": 2.5, "verify": 0.5},
)

LINKS: Mapping[str, Sequence[object]] = {
    "loss": (0.0, 0.0, 0.01, 0.1, 0.3),
    "delay": ((0.0001, 0.0005), (0.0001, 0.0005), (0.001, 0.01), (0.01, 0.05)),
    "duplicate": (0.0, 0.0, 0.1, 0.5),
    "reorder": (0.0, 0.0, 0.1, 0.3),
    "corrupt": (0.0, 0.0, 0.02),
}
BANDWIDTHS = (None, None, None, 10_000_000.0, 500_000.0)
HOSTILE_STRANGERS, HOSTILE_MEMBERS = 0.15, 0.1
"""The shares of the seeds that have a hostile stranger, or a hostile member."""
STATES = 0.3
"""The share of the seeds with a replicated state, among those that promise everything."""
NARROW = 0.3
"""The share of the seeds whose datagrams are packets, on paths with rates and queues."""
PACKETS: Mapping[str, Sequence[float]] = {
    "packet_loss": (0.0, 0.001, 0.01, 0.05),
    "mtu": (576, 1_500, 1_500, 9_000),
}
PATHS: Mapping[str, Sequence[float | None]] = {
    "downlink": (None, None, 25_000_000.0, 2_500_000.0, 250_000.0),
    "shared": (None, None, 25_000_000.0, 1_000_000.0),
    "queue": (None, 64_000, 300_000),
}


def draw_spec(rng: Random) -> StackSpec:
    """A stack: a preset, and about half of its settings changed."""
    name = rng.choice(PRESETS)
    spec = presets.tcp(seeds=FIRST_NAMES[:2]) if name == "tcp" else presets.PRESETS[name]()
    for role, choices in SETTINGS.items():
        values = _draw_values(spec[role], choices, rng)
        if role == "failure":
            values.update(rng.choice(FAILURE_TIMES))
        spec = spec.replace(type(spec[role])(**values))
    spec = spec.insert(SlowMembers()) if rng.random() < 0.1 else spec
    # Its own generator: a new setting there changes no network and no fault of a seed.
    number = rng.getrandbits(64)
    return _draw_others(_draw_brakes(spec, Random(number)), number)


def _draw_brakes(spec: StackSpec, rng: Random) -> StackSpec:
    """The stack with flow control, large messages and policies that it may not have had."""
    if rng.random() < 0.3:
        spec = spec.insert(rng.choice((Flow(), Pacing())))
    if rng.random() < 0.1:
        spec = spec.insert(LargeMessages())
    if rng.random() < 0.2:
        spec = spec.insert(SlowMembers(policy=rng.choice(("wait", "skip", "evict"))))
    for tables in (BRAKES, BUFFERS):
        for role, choices in tables.items():
            if role in spec:
                values = _draw_values(spec[role], choices, rng)
                spec = spec.replace(type(spec[role])(**values))
    if rng.random() < 0.15:
        threshold = rng.choice((1, 256))
        spec = spec.insert(
            Compress(algorithm="zlib", threshold=threshold, level=rng.choice((1, 9)))
        )
    if rng.random() < 0.25:
        with suppress(ConfigError):  # Not where survivors may differ, or messages are skipped.
            spec = spec.insert(Sequencer(order_entries=rng.choice((1, 2, 64))))
    if rng.random() < 0.2:
        spec = spec.insert(Majority(first=rng.choice((1, 1, 2, 3))))
    return spec


def _draw_others(spec: StackSpec, number: int) -> StackSpec:
    """The stack with other settings changed, those of each role by a generator of its own: a new
    one changes nothing else of a seed."""
    for role, choices in OTHERS.items():
        if role in spec:
            rng = Random(f"{number}/{role}")
            values = _draw_values(spec[role], choices, rng)
            if role == "fragment":
                values.update(rng.choice(FRAGMENT_BOUNDS))
            spec = spec.replace(type(spec[role])(**values))
    return spec


def _draw_values(
    protocol: Spec, choices: Mapping[str, Sequence[object]], rng: Random
) -> dict[str, object]:
    """The settings of a protocol, about half of those that may vary changed."""
    values = protocol.values()
    for setting, options in choices.items():
        if rng.random() < 0.5 and setting in values:
            values[setting] = rng.choice(options)
    return values


def draw_link(rng: Random) -> dict[str, object]:
    """The settings of all links."""
    return {name: rng.choice(options) for name, options in LINKS.items()}


def draw_path(seed: int) -> tuple[dict[str, object], dict[str, float]]:
    """The settings of packets on all links, and of the switch.

    They have a generator of their own: all other draws of a seed are as they are without them.
    """
    rng = Random(f"{seed}/path")
    if rng.random() >= NARROW:
        return {}, {}
    link: dict[str, object] = {name: rng.choice(options) for name, options in PACKETS.items()}
    drawn = {name: rng.choice(options) for name, options in PATHS.items()}
    return link, {name: value for name, value in drawn.items() if value is not None}


def draw_refusals(seed: int) -> bool:
    """Whether the systems of dead members refuse what reaches them; by a generator of its own."""
    return Random(f"{seed}/refusals").random() < 0.5


def draw_states(seed: int, spec: StackSpec) -> bool:
    """Whether members keep a state that newcomers are given; by a generator of its own. Only where
    everything is promised, else states differ as documented."""
    promises = promises_of(spec)
    is_whole = promises.agreement and promises.complete and promises.loopback
    return is_whole and Random(f"{seed}/states").random() < STATES


def draw_hostile(seed: int) -> str:
    """The hostile process of a seed: a stranger, the name of a member, or none.

    It has a generator of its own, like paths."""
    rng = Random(f"{seed}/hostile")
    chance = rng.random()
    if chance < HOSTILE_STRANGERS:
        return STRANGER
    return rng.choice(FIRST_NAMES[:2]) if chance < HOSTILE_STRANGERS + HOSTILE_MEMBERS else ""


def draw_bandwidth(rng: Random) -> float | None:
    """Bytes per second of each sender."""
    return rng.choice(BANDWIDTHS)
