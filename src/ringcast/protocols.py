"""Every protocol that a stack may consist of, and how users' own ones are found.

    from ringcast.protocols import NakAck4, SlowMembers

A user's protocol registers itself when its module is imported (`ringcast.protocols.protocol`). A
name in a TOML file or on the command line never imports code by itself: it finds what is registered
already, and what installed packages declare under the entry point group "ringcast.protocols".
"""

from __future__ import annotations

from importlib.metadata import entry_points

from ringcast.control.discovery import Discovery
from ringcast.control.failure_detector import FailureDetector
from ringcast.control.membership.settings import Membership
from ringcast.control.path_mtu import PathMtu
from ringcast.control.slow_members import SlowMembers
from ringcast.control.stability import Stability
from ringcast.core.model.batch import INTERNAL, Payload
from ringcast.core.stack import ports, registry
from ringcast.core.stack.counters import declare
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer, Part, Spec
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.seal import BodySeal
from ringcast.errors import ConfigError, WrongKey, did_you_mean
from ringcast.layers.compress.layer import Compress
from ringcast.layers.faults import Faults
from ringcast.layers.flow.layer import Flow
from ringcast.layers.fragment.layer import Fragment
from ringcast.layers.large import LargeMessages
from ringcast.layers.majority import Majority
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.pacing import Pacing
from ringcast.layers.sequencer import Sequencer
from ringcast.layers.unicast.settings import Unicast
from ringcast.layers.wire import Wire
from ringcast.transports import Memory, Tcp, Udp

ENTRY_POINTS = "ringcast.protocols"
"""The group of entry points under which installed packages declare protocols."""

__all__ = [
    "ENTRY_POINTS",
    "INTERNAL",
    "BodySeal",
    "Compress",
    "Discovery",
    "Env",
    "FailureDetector",
    "Faults",
    "Flow",
    "Fragment",
    "Installation",
    "LargeMessages",
    "Layer",
    "Majority",
    "Membership",
    "Memory",
    "NakAck3",
    "NakAck4",
    "Pacing",
    "Part",
    "PartSnapshot",
    "PathMtu",
    "Payload",
    "Sequencer",
    "SlowMembers",
    "Spec",
    "Stability",
    "Tcp",
    "Udp",
    "Unicast",
    "Wire",
    "WrongKey",
    "declare",
    "find",
    "named",
    "names",
    "ports",
    "protocol",
]


def names() -> list[str]:
    """Every registered protocol by its name, from the top of a stack to its bottom."""
    return registry.names()


def find(name: str) -> type[Spec] | None:
    """The protocol with this name, former name or "package.module:Class"; None if there is none."""
    found = registry.find(name)
    if found is None:
        for point in entry_points(group=ENTRY_POINTS):
            if name in (point.name, point.value):
                point.load()
        found = registry.find(name)
    return None if found is None else found.spec


def named(name: str) -> type[Spec]:
    """The same. Raises ConfigError when there is none."""
    found = find(name)
    if found is None:
        raise ConfigError(
            f"there is no protocol {name}: there are {', '.join(names())}; one of your own has to"
            f' be imported before, or installed with an entry point "{ENTRY_POINTS}"'
            + did_you_mean(name, names())
        )
    return found


def __getattr__(name: str) -> type[Spec]:
    """Former names, with a warning."""
    found = None if name.startswith("_") else registry.find(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found.spec
