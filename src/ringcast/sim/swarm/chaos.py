"""What happens to a group in the swarm: work, joins and every fault, chosen by a seeded generator.

`Chaos` makes the random choices, and `Actions` performs and records what they come to.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ringcast.core.model.address import Address
from ringcast.core.wire import frames
from ringcast.core.wire.codec import FRAME_TYPES, encode, group_id
from ringcast.sim.engine.member import Member, ProcessState
from ringcast.sim.engine.world import World
from ringcast.sim.swarm.actions import ANY, NOTHING, Actions, ChaosListener
from ringcast.sim.swarm.draw import FIRST_NAMES
from ringcast.sim.swarm.hostile import STRANGER, Known, draw_datagram, stranger
from ringcast.sim.swarm.hostile import member as known_to_member
from ringcast.sim.swarm.kept_states import KeptStates

MEMBERS_MAX = 8
SIZES = (1, 20, 20, 200, 1_000, 5_000)
BURSTS = (1, 1, 5, 50, 300)
BURST_BYTES_MAX = 100_000
ATTACKS = 10
"""How often a hostile process acts, beside the 36 other choices."""


class Chaos:
    """Does things to a world: `act` does one of them."""

    def __init__(
        self,
        world: World,
        listener: ChaosListener,
        rng: Random,
        hostile: str = "",
        replicas: KeptStates | None = None,
    ) -> None:
        self._world = world
        self._rng = rng
        self._hostile = hostile
        self.actions = Actions(world, listener, rng.choice(SIZES), replicas)
        self._choices: list[Callable[[], object]] = [
            *[self.burst] * 8,
            *[self.whisper] * 2,
            *[self.join] * 3,
            *[self.crash_coordinator, self.crash, self.crash_sender, self.crash_sender],
            *[self.pause, self.resume, self.resume, self.partition, self.partition, self.heal],
            *[self.leave, self.restart, self.restart, self.busy, self.idle, self.idle],
            *[self.garbage, self.replay, self.forge, self.change_loss, self.drop, self.undrop],
            *[self.cut, self.undrop, self.deafen],
            *([self.attack] * ATTACKS if hostile else ()),
        ]

    def act(self) -> None:
        """Do one thing, drawn from all choices."""
        self._rng.choice(self._choices)()

    def calm(self) -> None:
        """End all faults."""
        end_faults(self._world)

    # Work -----------------------------------------------------------------------------------------

    def burst(self) -> None:
        """A member sends a run to the group."""
        if member := self._ready_member():
            self.actions.do("send", member.name, self.count())

    def whisper(self) -> None:
        """A member sends a run to one member of its view."""
        member = self._ready_member()
        if member is not None and member.view is not None:
            count = self.count()
            to = self._rng.choice(member.view.members)
            self.actions.do("send", member.name, count, self.actions.name(to))

    def count(self) -> int:
        """How many messages the next run has."""
        return min(self._rng.choice(BURSTS), max(1, BURST_BYTES_MAX // self.actions.size))

    # Coming and going -----------------------------------------------------------------------------

    def join(self) -> None:
        """One more member joins while the others work."""
        alive = [member for member in self._world.members.values() if member.alive]
        names = [name for name in FIRST_NAMES if name not in self._world.members]
        if names and len(alive) < MEMBERS_MAX:
            self.actions.do("start", names[0])

    def crash(self) -> None:
        """A member crashes."""
        self._crash(self._ready_member())

    def crash_coordinator(self) -> None:
        """The coordinator of a member's view crashes."""
        member = self._ready_member()
        if member is not None and member.view is not None:
            by_address = {other.me: other for other in self._world.members.values()}
            self._crash(by_address.get(member.view.coordinator))

    def crash_sender(self) -> None:
        """A member sends and crashes at once, or while its messages are in flight."""
        member = self._ready_member()
        if member is not None:
            self.actions.do("send", member.name, self.count())
            self.actions.do("run", self._rng.choice((0.0, 0.0003, 0.01)))
            self._crash(member)

    def _crash(self, member: Member | None) -> None:
        alive = [other for other in self._world.members.values() if other.alive]
        if member is not None and member.alive and len(alive) > 2:
            self.actions.do("crash", member.name)

    def restart(self) -> None:
        """A member, running or gone, starts again."""
        member = self._rng.choice(list(self._world.members.values()))
        self.actions.do("restart", member.name)

    def leave(self) -> None:
        """A member leaves in order."""
        member = self._ready_member()
        if member is not None and not member.leaving and len(self._world.running) > 2:
            self.actions.do("leave", member.name)

    def pause(self) -> None:
        """A member gets no CPU."""
        if len(self._world.running) > 2 and (member := self._ready_member()):
            self.actions.do("pause", member.name)

    def resume(self) -> None:
        """The first paused member goes on."""
        for member in self._world.members.values():
            if member.state is ProcessState.PAUSED:
                self.actions.do("resume", member.name)
                return

    def busy(self) -> None:
        """An application stops taking messages."""
        if member := self._ready_member():
            self.actions.do("busy", member.name)

    def idle(self) -> None:
        """An application goes on taking messages."""
        for member in self._world.running:
            if member.is_busy:
                self.actions.do("idle", member.name)
                return

    # The network ----------------------------------------------------------------------------------

    def partition(self) -> None:
        """The group falls apart into two or three."""
        names = list(self._world.members)
        self._rng.shuffle(names)
        cuts = sorted(
            self._rng.randrange(len(names) + 1) for _ in range(self._rng.choice((1, 1, 2)))
        )
        sides = [names[i:j] for i, j in zip([0, *cuts], [*cuts, len(names)], strict=True)]
        self.actions.do("partition", " | ".join(" ".join(side) for side in sides if side))

    def heal(self) -> None:
        """The partition ends."""
        self.actions.do("heal")

    def change_loss(self) -> None:
        """All links become better or worse."""
        self.actions.do("loss", self._rng.choice((0.0, 0.05, 0.2, 0.4)))

    def drop(self) -> None:
        """Frames of one kind do not get through, perhaps only between two members."""
        kind = self._rng.choice(sorted(frame.kind for frame in FRAME_TYPES.values()))
        source, target = self._rng.choices([*self._world.members, None], k=2)
        self.actions.do("drop", kind, source or ANY, target or ANY)

    def cut(self) -> None:
        """A link between two members is down, in one direction or both."""
        names = list(self._world.members)
        if len(names) > 1:
            ends = self._rng.sample(names, 2)
            self.actions.do("drop", ANY, *ends)
            if self._rng.random() < 0.5:
                self.actions.do("drop", ANY, *reversed(ends))

    def deafen(self) -> None:
        """Multicast does not reach one member any more."""
        self.actions.do("deafen", self._rng.choice(list(self._world.members)))

    def undrop(self) -> None:
        """The kind that was dropped first gets through again."""
        self.actions.do("undrop")

    # Bad input ------------------------------------------------------------------------------------

    def garbage(self) -> None:
        """Random bytes reach all running members."""
        data = self._rng.randbytes(self._rng.choice((0, 1, 31, 32, 200, 2_000)))
        self.actions.do("inject", data.hex() or NOTHING)

    def replay(self) -> None:
        """Datagrams that were sent some time ago reach their receivers again."""
        self.actions.do("repeat", self._rng.choice((1, 7, 30)))

    def forge(self) -> None:
        """Well-formed frames arrive from another group, and from an unknown member."""
        stranger = Address(self._rng.getrandbits(64))
        frame = self._rng.choice((frames.Ack(1 << 40), frames.Alive(), frames.Probe()))
        for group in ("another", "sim"):
            data = b"".join(encode(group_id(group), stranger, [frame]))
            self.actions.do("inject", data.hex())

    def attack(self) -> None:
        """The hostile process sends frames of any kind to all running members."""
        known = self._known()
        for _ in range(self._rng.choice((1, 5, 20)) if known is not None else 0):
            assert known is not None
            self.actions.do("inject", draw_datagram(self._rng, known).hex())

    def _known(self) -> Known | None:
        members = self._world.members
        if self._hostile == STRANGER:
            return stranger(self._rng, [other.me for other in members.values()])
        itself = members.get(self._hostile)
        if itself is None or not itself.alive or itself.view is None:
            return None
        return known_to_member(itself.me, itself.view)

    def _ready_member(self) -> Member | None:
        ready = [m for m in self._world.running if not m.leaving and m.stack.closed is None]
        return self._rng.choice(ready) if ready else None


def end_faults(world: World) -> None:
    """Make the network good, and let all members and applications go on."""
    world.network.reset()
    for member in world.members.values():
        if member.state is ProcessState.PAUSED:
            member.resume()
        if member.is_busy:
            member.idle()
    world.done(None, "all faults end")
