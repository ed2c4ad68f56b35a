"""Random stacks and networks for the swarm: settings at their edges, links good and bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ringcast import presets
from ringcast.parts.slow import Slow
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
        "park_frames": (0, 4, 256),
        "retain": (True, True, True, False),
        "ack_threshold": (1, 8, 1_024),
    },
    "wire": {"mtu": (512, 1_400, 60_000), "checksum": ("head", "full")},
    "discovery": {"merge_interval": (0.5, 2.0)},
    "membership": {"gather": (0.001, 0.02, 0.1), "change_timeout": (3.0, 10.0)},
    "failure": {"watchers": (1, 2, 3)},
}
"""Per role the settings that vary and their values; those that a protocol lacks are left out."""

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


def draw_spec(rng: Random) -> StackSpec:
    """A stack: a preset, and about half of its settings changed."""
    name = rng.choice(PRESETS)
    spec = presets.tcp(seeds=FIRST_NAMES[:2]) if name == "tcp" else presets.PRESETS[name]()
    for role, choices in SETTINGS.items():
        protocol = spec[role]
        values = protocol.values()
        for setting, options in choices.items():
            if rng.random() < 0.5 and setting in values:
                values[setting] = rng.choice(options)
        if role == "failure":
            values.update(rng.choice(FAILURE_TIMES))
        spec = spec.replace(type(protocol)(**values))
    return spec.insert(Slow()) if rng.random() < 0.1 else spec


def draw_link(rng: Random) -> dict[str, object]:
    """The settings of all links."""
    return {name: rng.choice(options) for name, options in LINKS.items()}


def draw_bandwidth(rng: Random) -> float | None:
    """Bytes per second of each sender."""
    return rng.choice(BANDWIDTHS)
