"""Ready stacks. Each but `lan` is written as a difference from it."""

from __future__ import annotations

from collections.abc import Sequence

from ringcast.layers.flow import Flow
from ringcast.layers.fragment import Fragment
from ringcast.layers.large import Large
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.unicast.layer import Unicast
from ringcast.layers.wire import Wire
from ringcast.parts.discovery import Discovery
from ringcast.parts.failure import Failure
from ringcast.parts.membership.settings import Membership
from ringcast.parts.slow import Slow
from ringcast.parts.stability import Stability
from ringcast.spec import StackSpec
from ringcast.transports import Tcp, Udp


def lan(bind: str = "") -> StackSpec:
    """UDP multicast and fixed windows, at the address `bind`, else on the usual interface.

    Promises every message of a view to all of its members, in order, once; and what a survivor of a
    crash has delivered, all survivors deliver.
    """
    return StackSpec(
        Fragment(),
        NakAck4(),
        Unicast(),
        Wire(),
        Discovery(),
        Failure(),
        Membership(),
        Udp(bind=bind),
    )


def loopback() -> StackSpec:
    """One machine: starts in well under a second. Promises what `lan` promises."""
    return lan(bind="127.0.0.1").replace(Discovery(timeout=0.1, interval=0.02, merge_interval=0.5))


def tcp(seeds: Sequence[str] = (), port: int = 0, bind: str = "127.0.0.1") -> StackSpec:
    """No multicast needed: a TCP connection per pair, members found by seeds.

    Promises what `lan` promises.
    """
    alone = "auto" if seeds else "found"
    return lan().replace(
        Discovery(multicast=False, seeds=tuple(seeds), alone=alone),
        Tcp(port=port, bind=bind),
    )


def stable() -> StackSpec:
    """One table per sender, purged by stability, and flow control by credits: the design of 2007.

    Promises what `lan` promises.
    """
    return lan().insert(Flow(), NakAck3(), Stability())


def bulk() -> StackSpec:
    """Large messages to large groups, where no slow receiver may hold the rest back.

    Promises order, and every message to all that keep up; who does not is skipped past a timeout,
    told so, and reported to the sender. Survivors of a crash may differ in the crashed sender's
    last messages, since receivers free a message as soon as their application has it.
    """
    patience = Slow(policy="skip", bound=2.0)
    return lan().replace(NakAck4(retain=False)).insert(Large(), patience)


PRESETS = {
    "lan": lan,
    "loopback": loopback,
    "tcp": tcp,
    "stable": stable,
    "bulk": bulk,
}
"""Every preset by its name."""
