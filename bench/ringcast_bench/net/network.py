"""What happens on the bridge while a row runs, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast_bench.net.bridge import MTU

KB = 1_000
MBIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class LinkChange:
    """Something that happens while messages flow."""

    at: float
    """When, as a part of the whole time."""
    rate: int = 0
    """The rate of the receivers' links from then on, in bit/s; 0 leaves it."""
    mtu: int = 0
    """The MTU of the last receiver's interface from then on; 0 leaves it. Larger packets vanish."""
    sender_mtu: int = 0
    """The MTU of the sender's interface from then on; 0 leaves it."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """Links, losses and sizes. A rate of 0 means that nothing is shaped."""

    offload: bool = True
    """Whether devices segment; without it every packet of a datagram can be lost by itself."""
    permille: int = 0
    """Packets of a thousand that are lost where they arrive, at each member independently."""
    rate: int = 0
    """bit/s of the links from the bridge to the receivers."""
    last_rate: int = 0
    """The same for the last receiver; 0 when its link is like the others'."""
    sender_rate: int = 0
    """bit/s of the link from the sender to the bridge."""
    queue: int = 300 * KB
    """Bytes that wait before a narrow link; what comes above that is dropped."""
    mtu: int = MTU
    last_mtu: int = 0
    """The MTU of the last receiver; 0 when it is that of the others."""
    last_port_mtu: int = 0
    """The MTU of the bridge's port to the last receiver: larger packets vanish there."""
    apart: bool = False
    """Whether the last receiver is left out of the rate, and may miss messages."""
    changes: tuple[LinkChange, ...] = ()

    @property
    def narrowest(self) -> int:
        """bit/s that a sender that waits for all receivers can reach; 0 when nothing is shaped."""
        last = 0 if self.apart else self.last_rate
        return min((rate for rate in (self.rate, last, self.sender_rate) if rate), default=0)
