"""The settings of the unicast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Spec
from ringcast.core.stack.ports import PairDelivery
from ringcast.core.stack.registry import protocol
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast.layers.unicast.layer import UnicastLayer


@protocol(role="unicast", under="multicast", offers=(PairDelivery,))
@dataclass(frozen=True, kw_only=True)
class Unicast(Spec):
    """Reliable messages between two members."""

    capacity: int = 4_096
    """Messages that may be outstanding per receiver. More hides longer round trips and costs
    memory at both ends."""
    max_bytes: int = 4_000_000
    """Bytes that may be outstanding per receiver; what a burst may put into its socket buffer."""
    ack_threshold: int = 256
    """A receiver acks at once after this many delivered messages, at most a quarter of the
    capacity. Fewer acks cost less, and a sender with a small window waits longer."""
    xmit_interval: float = 0.1
    """Seconds between the ticks at which an idle sender announces its last message and receivers
    ack; the first time it does so a tenth of that after the message. Shorter finds a lost last
    message sooner, and costs a frame per tick while any is unacked."""
    request_delay: float = 0.001
    """The least seconds between seeing a gap and asking for it; grows where the path reorders."""
    request_ranges: int = 512
    """The most gaps in one request."""
    request_messages: int = 4_096
    """The most messages in one request; the rest is asked for in the next."""
    remembered_peers: int = 1_024
    """Departed members whose last connection is remembered, so that one that comes back with the
    same identity (after a partition) continues its connection. A few numbers each."""

    def __post_init__(self) -> None:
        at_least_1 = ("capacity", "max_bytes", "ack_threshold", "request_ranges")
        for field in (*at_least_1, "request_messages", "remembered_peers"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Unicast.{field} is {getattr(self, field)}: give at least 1")
        if self.xmit_interval <= 0:
            raise ConfigError(
                f"Unicast.xmit_interval is {self.xmit_interval}: give seconds above 0"
            )
        if not 0 <= self.request_delay <= self.xmit_interval:
            raise ConfigError(
                f"Unicast.request_delay is {self.request_delay}: give 0 up to the xmit_interval"
                f" of {self.xmit_interval} seconds"
            )

    def build(self, env: Env) -> UnicastLayer:
        """The layer with these settings."""
        # Here, and not above: the layer imports its settings.
        from ringcast.layers.unicast.layer import UnicastLayer  # noqa: PLC0415

        return UnicastLayer(env, self)
