"""The wire: frames of a step are packed into datagrams, and datagrams that come are let in.

Adaptive bundling without a timer: whatever a step produced for one target leaves in as few
datagrams as the mtu allows, so nothing waits when idle, and datagrams are full under load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ringcast.core.address import Address
from ringcast.core.codec import DATA_SIZE, EVERYBODY, HEADER_SIZE, encode
from ringcast.core.cut import SIZE_FIELD, cut, fits
from ringcast.core.env import Env
from ringcast.core.express import encode_pair, encode_run
from ringcast.core.frames import RUNS, Data, Frame
from ringcast.core.outbox import Datagram, Outbox, Target
from ringcast.core.part import Part, Spec
from ringcast.errors import ConfigError

MTU_MIN = 512
MTU_MAX = 1_000_000
UDP_MTU_MAX = 65_000
"""What fits a datagram of UDP; a connection of TCP carries more at once."""


@dataclass(frozen=True, kw_only=True)
class Wire(Spec):
    """How datagrams are made."""

    role: ClassVar[str] = "wire"

    mtu: int = 60_000
    """The largest datagram with messages, in bytes, 65,000 at the most with UDP. Large ones cost
    fewer system calls; beyond the network's own packet size (1,472 on Ethernet) the loss of one
    packet loses them whole."""
    checksum: str = "head"
    """"head" covers all that steers the protocol and leaves payloads to the checksum of UDP or TCP;
    "full" covers the payloads as well, at about 0.25 ns a byte on either side."""

    def __post_init__(self) -> None:
        if not MTU_MIN <= self.mtu <= MTU_MAX:
            raise ConfigError(f"Wire.mtu is {self.mtu}: give {MTU_MIN} to {MTU_MAX} bytes")
        if self.checksum not in ("head", "full"):
            raise ConfigError(f'Wire.checksum is "{self.checksum}": give "head" or "full"')

    def build(self, env: Env) -> WirePart:
        """The packer with these settings."""
        return WirePart(env, self)


class WirePart(Part):
    """Makes datagrams of the outbox."""

    def __init__(self, env: Env, spec: Wire) -> None:
        super().__init__(env)
        self.group = 0
        """The group's number on the wire; the stack sets it."""
        self._mtu = spec.mtu
        self._budget = spec.mtu - HEADER_SIZE - DATA_SIZE
        self._full_checksum = spec.checksum == "full"
        env.mtu = spec.mtu

    def pack(self, out: Outbox) -> list[Datagram]:
        """The frames of the outbox as datagrams, in order per target; empties the outbox."""
        if not out.frames:
            return []
        frames, out.frames = out.frames, []
        if len(frames) == 1:
            return self._pack_one(*frames[0])
        open_bundles: dict[Target, _Bundle] = {}
        done: list[_Bundle | Data] = []
        for target, whole in frames:
            if isinstance(whole, Data) and target is None and self._goes_alone(whole):
                open_bundles.pop(None, None)
                done.append(whole)
                continue
            for frame in self._pieces(whole):
                size = _size(frame)
                bundle = open_bundles.get(target)
                if bundle is None or bundle.size + size > self._mtu:
                    bundle = open_bundles[target] = _Bundle(target)
                    done.append(bundle)
                bundle.frames.append(frame)
                bundle.size += size
        datagrams: list[Datagram] = []
        for item in done:
            if isinstance(item, _Bundle):
                datagrams.append(self._encode(item.target, item.frames))
            else:
                datagrams += self._datagrams(item)
        return datagrams

    def _pack_one(self, target: Target, frame: Frame) -> list[Datagram]:
        """The usual case when there is little to do."""
        if isinstance(frame, RUNS) and frame.size and not self._full_checksum:
            if isinstance(frame, Data):
                if target is None:
                    return self._datagrams(frame)
            elif frame.nbytes <= self._budget and isinstance(target, Address):
                return [encode_pair(self.group, self.env.me, target, frame)]
        return [self._encode(target, (piece,)) for piece in self._pieces(frame)]

    def _goes_alone(self, run: Data) -> bool:
        """Whether a run fills datagrams by itself, and needs nothing of the general encoding."""
        return run.size > 0 and 2 * run.nbytes > self._budget and not self._full_checksum

    def _datagrams(self, run: Data) -> list[Datagram]:
        step = max(1, self._budget // run.size)
        return list(encode_run(self.group, self.env.me, run, step))

    def _pieces(self, frame: Frame) -> Iterable[Frame]:
        """A frame as frames that fit a datagram each."""
        if isinstance(frame, RUNS) and not fits(frame, self._budget):
            return cut(frame, self._budget)
        return (frame,)

    def _encode(self, target: Target, frames: Sequence[Frame]) -> Datagram:
        address = target if isinstance(target, Address) else EVERYBODY
        buffers = encode(self.group, self.env.me, frames, self._full_checksum, address)
        return Datagram(target, buffers, sum(map(len, buffers)))


class _Bundle:
    """Frames that will leave as one datagram."""

    __slots__ = ("frames", "size", "target")

    def __init__(self, target: Target) -> None:
        self.target = target
        self.frames: list[Frame] = []
        self.size = HEADER_SIZE


def _size(frame: Frame) -> int:
    """About how large a frame is; exact for runs, a guess for the small ones."""
    if isinstance(frame, RUNS):
        sizes = 0 if frame.size else SIZE_FIELD * len(frame.payloads)
        return DATA_SIZE + sizes + frame.nbytes
    return 64
