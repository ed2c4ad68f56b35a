"""The wire: frames of a step are packed into datagrams, and datagrams that come are let in.

Adaptive bundling without a timer: whatever a step produced for one target leaves in as few
datagrams as the mtu allows, so nothing waits when idle, and datagrams are full under load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Payload
from ringcast.core.stack.datagram_size import BASE_SIZE, SIZE_MIN, DatagramSize
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part, Spec
from ringcast.core.stack.ports import Packer
from ringcast.core.stack.registry import protocol
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.codec import FIXED_SIZE, assemble, encode_frame
from ringcast.core.wire.cut import RANGE_SIZE, REQUEST_SIZE, cut, cut_request, fits
from ringcast.core.wire.fastpath import encode_pair, encode_run
from ringcast.core.wire.frames import (
    RUNS,
    Data,
    Frame,
    FramePiece,
    Nak,
    PathProbe,
    UnicastData,
    UnicastNak,
)
from ringcast.core.wire.layout import (
    DATA_SIZE,
    EMPTY_MAX,
    EVERYBODY,
    FRAMES_MAX,
    HEADER_SIZE,
    RANGES_MAX,
)
from ringcast.core.wire.outbox import Datagram, Outbox, PackedPart, Target, without_trains
from ringcast.core.wire.packed import (
    SentRuns,
    encode_packed,
    is_worth_packing,
    may_be_worth_packing,
    pack,
)
from ringcast.core.wire.pieces import FRAME_MAX, split
from ringcast.errors import ConfigError

MTU_MIN = SIZE_MIN
MTU_MAX = 1_000_000
UDP_MTU_MAX = 65_000
"""What fits a datagram of UDP; a connection of TCP carries more at once."""
PACKET_MAX = 20_000
"""Datagrams up to this size travel on a network; larger ones stay on a machine, or in a stream."""


@protocol(role="wire", under="faults", offers=(Packer,), shared=False)
@dataclass(frozen=True, kw_only=True)
class Wire(Spec):
    """How datagrams are made."""

    mtu: int = 0
    """The largest datagram with messages, in bytes, 65,000 at the most with UDP. 0 takes what fits
    one packet of the interface: 60,000 on loopback, 1,472 on Ethernet with IPv4, more with jumbo
    frames; and less where a path carries less. A number is kept, whatever the packets: the loss of
    one packet loses a larger datagram whole. Datagrams are never larger than what every member of
    the view takes."""
    checksum: str = "head"
    """"head" covers all that steers the protocol and leaves payloads to the checksum of UDP or TCP;
    "full" covers the payloads as well, at about 0.25 ns a byte on either side."""

    def __post_init__(self) -> None:
        if self.mtu and not MTU_MIN <= self.mtu <= MTU_MAX:
            raise ConfigError(
                f"Wire.mtu is {self.mtu}: give {MTU_MIN} to {MTU_MAX} bytes,"
                " or 0 for what fits a packet of the interface"
            )
        if self.checksum not in ("head", "full"):
            raise ConfigError(f'Wire.checksum is "{self.checksum}": give "head" or "full"')

    def build(self, env: Env) -> WirePart:
        """The packer with these settings."""
        return WirePart(env, self)


@dataclass(frozen=True, kw_only=True)
class WireSnapshot(PartSnapshot):
    """The size of datagrams."""

    datagram_bytes: int
    """The largest datagram that this member sends."""
    datagram_source: str
    """What sets it: "user", "interface", "view" or "probe"."""


class WirePart(Part):
    """Makes datagrams of the outbox."""

    def __init__(self, env: Env, spec: Wire) -> None:
        super().__init__(env)
        self.group = 0
        """The group's number on the wire; the stack sets it."""
        self._sent_runs = SentRuns(env.me)
        env.out.again = self._again
        self._seal = env.seal
        self._overhead = 0 if env.seal is None else env.seal.overhead
        size = DatagramSize(spec.mtu or max(MTU_MIN, env.mtu), is_given=spec.mtu > 0)
        env.datagram_size, env.peer = size, env.peer._replace(mtu=size.own)
        self._mtu = 0
        self.resize()
        self._full_checksum = spec.checksum == "full"
        self._watcher: Callable[[int], None] | None = None

    def resize(self) -> bool:
        """Follow the bounds in `env.datagram_size`; returns whether the size is another one."""
        former, size = self._mtu, self.env.datagram_size.size
        self._mtu = size - self._overhead
        self.env.resize(self._mtu)
        self._budget = self._mtu - HEADER_SIZE - DATA_SIZE
        self._may_pack = may_be_worth_packing(self._budget)
        # Control frames arrive also where the path has not been found out yet.
        control = min(size, BASE_SIZE) if size <= PACKET_MAX else size
        self._control_room = control - self._overhead - HEADER_SIZE
        return self._mtu != former

    def watch(self, watcher: Callable[[int], None]) -> None:
        """Call this once, with the bytes of the next datagram that some path may not carry."""
        self._watcher = watcher

    def snapshot(self) -> WireSnapshot:
        size = self.env.datagram_size
        return WireSnapshot(datagram_bytes=size.size, datagram_source=size.source)

    def pack(self, out: Outbox) -> list[Datagram]:
        """The frames of the outbox as datagrams, in order per target; empties the outbox."""
        if not out.frames:
            return []
        frames, out.frames = out.frames, []
        datagrams = self._pack_one(*frames[0]) if len(frames) == 1 else self._pack(frames)
        if self._watcher is not None and datagrams and datagrams[0].nbytes > SIZE_MIN:
            watcher, self._watcher = self._watcher, None
            watcher(datagrams[0].nbytes)
        return datagrams if self._seal is None else self._seal.seal(datagrams)

    def _pack(self, frames: list[tuple[Target, Frame]]) -> list[Datagram]:
        open_bundles: dict[Target, _Bundle] = {}
        done: list[_Bundle | tuple[Address | None, Data | PackedPart]] = []
        for target, whole in frames:
            if self._goes_alone(whole) and not isinstance(target, str):
                open_bundles.pop(target, None)
                done.append((target, whole))
                continue
            for frame in self._pieces(whole):
                head = encode_frame(frame)
                bundle = open_bundles.get(target)
                if bundle is None or not bundle.takes(frame, head, self._mtu):
                    bundle = open_bundles[target] = _Bundle(target)
                    done.append(bundle)
                bundle.add(frame, head)
        datagrams: list[Datagram] = []
        for item in done:
            if isinstance(item, _Bundle):
                datagrams.append(self._assemble(item))
            else:
                datagrams += self._datagrams(*item)
        return datagrams

    def _pack_one(self, target: Target, frame: Frame) -> list[Datagram]:
        """The usual case when there is little to do."""
        if isinstance(frame, PackedPart) and not isinstance(target, str):
            return self._datagrams(target, frame)
        if isinstance(frame, RUNS) and frame.size and not self._full_checksum:
            if isinstance(frame, Data):
                if not isinstance(target, str) and frame.size <= self._budget:
                    return self._datagrams(target, frame)
            elif frame.nbytes <= self._budget and isinstance(target, Address):
                return [encode_pair(self.group, self.env.me, target, frame)]
        if type(frame) in FIXED_SIZE:
            return [self._small(target, frame)]
        return [self._alone(target, piece) for piece in self._pieces(frame)]

    def _small(self, target: Target, frame: Frame) -> Datagram:
        """A frame of a few numbers, such as an ack."""
        address = target if isinstance(target, Address) else EVERYBODY
        head = encode_frame(frame)
        buffers = assemble(self.group, self.env.me, (head,), (), self._full_checksum, address)
        return Datagram(target, buffers, HEADER_SIZE + len(head))

    def _goes_alone(self, frame: Frame) -> TypeGuard[Data | PackedPart]:
        """Whether messages fill datagrams by themselves, and need nothing of the general
        encoding."""
        if isinstance(frame, PackedPart):
            return True
        if not isinstance(frame, Data) or self._full_checksum:
            return False
        return 0 < frame.size <= self._budget and 2 * frame.nbytes > self._budget

    def _datagrams(self, target: Address | None, run: Data | PackedPart) -> list[Datagram]:
        if isinstance(run, Data):
            part = None
            if target is None:
                part = self._packed(run)
                self.env.out.is_packing = part is not None
            if part is None:
                step = max(1, self._budget // run.size)
                return list(encode_run(self.group, self.env.me, run, step, target))
            run = part
        trains = encode_packed(run, target, self.env.out.train_bytes)
        is_cut = self._seal is not None or not self.env.sends_trains
        return list(without_trains(trains) if is_cut else trains)

    def _packed(self, run: Data) -> PackedPart | None:
        """A run as datagrams that are full, if it is worth that."""
        me, budget = self.env.me, self._budget
        if not self._may_pack or run.origin != me or not is_worth_packing(run, budget):
            return None
        part = pack(self.group, me, run, budget)
        self._sent_runs.note(run, part)
        return part

    def _again(self, run: Data, target: Target) -> list[Data | PackedPart]:
        """What sends messages again."""
        return self._sent_runs.again(run, target, self._mtu)

    def _pieces(self, frame: Frame) -> Iterable[Frame]:
        """A frame as frames that fit a datagram each."""
        if isinstance(frame, RUNS):
            return (frame,) if fits(frame, self._budget) else self._cut(frame)
        if isinstance(frame, PathProbe):
            return (self._filled(frame),)
        room = self._control_room
        if isinstance(frame, Nak | UnicastNak):
            most = min(RANGES_MAX, (room - REQUEST_SIZE) // RANGE_SIZE)
            return (frame,) if frame.ranges.count_ranges <= most else cut_request(frame, most)
        if type(frame) in FIXED_SIZE:
            return (frame,)
        encoded = encode_frame(frame)
        if len(encoded) <= room:
            return (frame,)
        if len(encoded) > FRAME_MAX:
            self.env.counters["dropped_oversized"] += 1
            return ()
        return split(encoded, room)

    def _cut(self, frame: Data | UnicastData) -> Iterator[Frame]:
        """A run as runs that fit a datagram; a message that was to fit a larger one in pieces."""
        room = self._mtu - HEADER_SIZE
        for run in cut(frame, self._budget):
            head = encode_frame(run)
            if len(head) + run.nbytes <= room or len(head) + run.nbytes > FRAME_MAX:
                yield run
            else:
                yield from split(b"".join((head, *run.payloads)), room)

    def _filled(self, probe: PathProbe) -> PathProbe:
        """A probe that makes a datagram of the size that it names."""
        empty = self._overhead + HEADER_SIZE + len(encode_frame(probe))
        return replace(probe, padding=bytes(max(0, probe.size - empty)))

    def _alone(self, target: Target, frame: Frame) -> Datagram:
        bundle = _Bundle(target)
        bundle.add(frame, encode_frame(frame))
        return self._assemble(bundle)

    def _assemble(self, bundle: _Bundle) -> Datagram:
        target = bundle.target
        address = target if isinstance(target, Address) else EVERYBODY
        buffers = assemble(
            self.group, self.env.me, bundle.heads, bundle.payloads, self._full_checksum, address
        )
        assert bundle.size <= self._mtu or len(bundle.heads) == 1
        return Datagram(target, buffers, bundle.size)


ALONE = (FramePiece, PathProbe)
"""Frames that share their datagram with no other one."""


class _Bundle:
    """Encoded frames that will leave as one datagram."""

    __slots__ = ("empty", "heads", "is_closed", "payloads", "size", "target")

    def __init__(self, target: Target) -> None:
        self.target = target
        self.heads: list[bytes] = []
        self.payloads: list[Payload] = []
        self.size = HEADER_SIZE
        """Bytes of the datagram."""
        self.empty = 0
        """Messages without content."""
        self.is_closed = False

    def takes(self, frame: Frame, head: bytes, mtu: int) -> bool:
        """Whether a frame fits in."""
        if self.is_closed or isinstance(frame, ALONE) or len(self.heads) == FRAMES_MAX:
            return False
        if isinstance(frame, RUNS) and not frame.nbytes:
            return self.empty + len(frame.payloads) <= EMPTY_MAX and self.size + len(head) <= mtu
        return self.size + len(head) + (frame.nbytes if isinstance(frame, RUNS) else 0) <= mtu

    def add(self, frame: Frame, head: bytes) -> None:
        """Take a frame in."""
        self.heads.append(head)
        self.size += len(head)
        if isinstance(frame, RUNS):
            self.payloads += frame.payloads
            self.size += frame.nbytes
            self.empty += 0 if frame.nbytes else len(frame.payloads)
        self.is_closed = isinstance(frame, ALONE)
