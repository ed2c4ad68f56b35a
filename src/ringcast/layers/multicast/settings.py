"""The settings that every reliable multicast has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.model.block_times import BlockTimes
from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MulticastSpec(Spec):
    """The common settings; NakAck4 and NakAck3 add their own."""

    capacity: int = 16_384
    """Messages that may be outstanding per sender. More hides longer round trips and costs memory
    at every member."""
    max_bytes: int = 4_000_000
    """Bytes that may be outstanding per sender; what a burst may put into the receivers' socket
    buffers at once."""
    xmit_interval: float = 0.1
    """Seconds between the ticks at which an idle sender announces its last message and receivers
    ack; the first time it does so a tenth of that after the message. Shorter finds a lost last
    message sooner, and costs a frame per tick while anything is outstanding."""
    request_delay: float = 0.001
    """The least seconds between seeing a gap and requesting it; grows by itself where the path
    reorders."""
    request_ranges: int = 512
    """The most gaps in one request."""
    request_messages: int = 4_096
    """The most messages in one request; the next one has the rest."""
    answer: str = "auto"
    """The target of a retransmission: "unicast" the member that requested it, "multicast" the
    group, "auto" the group once a second member requests the same."""
    loopback: bool = True
    """Whether the own application is given the own messages."""
    early_frames: int = 256
    """Datagrams of a view that is not installed yet, which are kept until it is."""
    max_block_times: str = ""
    """How long a message waits in `send` for room at the most, by size: "1000:10,10000:100" has one
    of up to 1,000 bytes raise Timeout after 10 ms without progress, one of up to 10,000 after 100
    ms; larger ones wait. A timeout that `send` is given goes before this."""

    renamed: ClassVar[Mapping[str, str]] = {"park_frames": "early_frames"}

    def __post_init__(self) -> None:
        name = type(self).__name__
        for field in ("capacity", "max_bytes", "request_ranges", "request_messages"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{name}.{field} is {getattr(self, field)}: give at least 1")
        if self.xmit_interval <= 0:
            raise ConfigError(f"{name}.xmit_interval is {self.xmit_interval}: give seconds above 0")
        if not 0 <= self.request_delay <= self.xmit_interval:
            raise ConfigError(
                f"{name}.request_delay is {self.request_delay}: give 0 up to the xmit_interval"
                f" of {self.xmit_interval} seconds"
            )
        if self.answer not in ("auto", "unicast", "multicast"):
            raise ConfigError(
                f'{name}.answer is "{self.answer}": give "auto", "unicast" or "multicast"'
            )
        if self.early_frames < 0:
            raise ConfigError(f"{name}.early_frames is {self.early_frames}: give 0 or more")
        BlockTimes(self.max_block_times, f"{name}.max_block_times")
