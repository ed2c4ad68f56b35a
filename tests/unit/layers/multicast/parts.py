"""What the components of a reliable multicast are handed, for tests of each of them alone."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import View, ViewId
from ringcast.core.reliable.windows import Hole
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Layer
from ringcast.core.wire.frames import Frame
from ringcast.layers.multicast.group_windows import GroupWindows
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.multicast.sender_gaps import SenderGaps
from ringcast.layers.multicast.view_flush import ViewFlush

A, B, C, D = (Address(n) for n in (1, 2, 3, 4))
SPEC = NakAck4(capacity=100)


def installation(
    *members: Address,
    old: tuple[Address, ...] = (),
    number: int = 1,
    starts: dict[Address, int] | None = None,
) -> Installation:
    """The change to a view of these members."""
    peers = tuple(Peer(member, f"m{member}", "") for member in members)
    return Installation(
        View(ViewId(number, members[0]), peers),
        None,
        dict.fromkeys(members, 0) | (starts or {}),
        tuple(member for member in members if member not in old),
        tuple(member for member in old if member not in members),
    )


def run(first: int, count: int = 1, sender: Address = B) -> Batch:
    """Messages of ten bytes."""
    return Batch(sender, [bytes(10)] * count, 10 * count, first=first)


class Membership:
    """Counts what the flush tells the membership."""

    def __init__(self) -> None:
        self.reached_count = 0

    def reached(self) -> None:
        self.reached_count += 1


class Top(Layer):
    """The layer above, which may be about to send more."""

    is_pausing = False

    @property
    def pausing(self) -> bool:
        return self.is_pausing


class Parts:
    """A member A in a view with B and C, with the components that others are made of."""

    def __init__(self, keep: bool = True) -> None:
        self.env = Env(Peer(A, "a", ""), Random(1))
        self.layer = Layer(self.env)
        self.layer.above = self.top = Top(self.env)
        self.handed: list[tuple[Address, Batch | Hole]] = []
        self.requested: list[tuple[Address, RangeSet]] = []
        self.membership = Membership()
        self.group = GroupWindows(self.env, SPEC, keep)
        self.gaps = SenderGaps(self.layer, SPEC, self.group, self._request)
        self.flush = ViewFlush(self.group, self.gaps, self.hand_up)
        self.flush.membership = self.membership  # type: ignore[assignment]
        self.change = installation(A, B, C)
        self.group.install(self.change)
        self.flush.thaw()

    def hand_up(self, sender: Address, runs: list[Batch | Hole], reason: str = "") -> None:
        self.handed += [(sender, item) for item in runs]

    def _request(self, sender: Address, wanted: RangeSet) -> None:
        self.requested.append((sender, wanted))

    def send(self, count: int) -> None:
        """Number this many messages of this member."""
        self.group.sent.append(run(0, count, A))

    def frames(self) -> list[tuple[object, Frame]]:
        """What was sent since the last call: targets and frames."""
        frames = list(self.env.out.frames)
        self.env.out.frames.clear()
        return [(to, frame) for to, frame in frames]

    def due(self) -> list[str]:
        """The timers that are due by now, in order."""
        names = []
        while (timer := self.env.timers.pop_due(self.env.now)) is not None:
            names.append(timer[1])
        return names
