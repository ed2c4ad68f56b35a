"""What happens to a group in the swarm: work, joins and every fault, chosen by a seeded die."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from ringcast.core import frames
from ringcast.core.address import Address
from ringcast.core.codec import FRAME_TYPES, encode, group_id
from ringcast.core.events import Event
from ringcast.sim.draw import FIRST_NAMES
from ringcast.sim.faults import Drop, Parcel
from ringcast.sim.member import Member, State
from ringcast.sim.network import Fate, link_settings
from ringcast.sim.observer import Observer
from ringcast.sim.world import World

MEMBERS_MAX = 8
SIZES = (1, 20, 20, 200, 1_000, 5_000)
BURSTS = (1, 1, 5, 50, 300)
BURST_BYTES_MAX = 100_000


class Tap:
    """Keeps the last datagrams, to be sent again; passes everything on to another observer."""

    def __init__(self, inner: Observer | None) -> None:
        self.recent: deque[tuple[bytes, list[str]]] = deque(maxlen=100)
        """The last datagrams, each with whom it was for."""
        self._inner = inner

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        """A datagram was sent."""
        self.recent.append((parcel.data, [name for name, _ in fates]))
        if self._inner is not None:
            self._inner.sent(now, parcel, to, fates)

    def given(self, now: float, member: Member, event: Event) -> None:
        """An application was given an event."""
        if self._inner is not None:
            self._inner.given(now, member, event)

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Something was done."""
        if self._inner is not None:
            self._inner.done(now, member, what)


class Chaos:
    """Does things to a world; `act` does one, `calm` ends all faults."""

    def __init__(self, world: World, tap: Tap, rng: Random) -> None:
        self._world = world
        self._tap = tap
        self._rng = rng
        self._sent = 0
        self._size = rng.choice(SIZES)
        self._rules: list[Drop] = []
        self._actions: list[Callable[[], object]] = [
            *[self.burst] * 8,
            *[self.whisper] * 2,
            *[self.join] * 3,
            *[self.crash_coordinator, self.crash, self.crash_sender, self.crash_sender],
            *[self.pause, self.resume, self.resume, self.partition, self.partition, self.heal],
            *[self.leave, self.restart, self.restart, self.busy, self.idle, self.idle],
            *[self.garbage, self.replay, self.forge, self.change_loss, self.drop, self.undrop],
        ]

    def act(self) -> None:
        """One thing, whatever it is."""
        self._rng.choice(self._actions)()

    def calm(self) -> None:
        """The network is good and everybody goes on."""
        world = self._world
        world.network.reset()
        for name in link_settings():
            world.network.set_all(name, (0.0001, 0.0005) if name == "delay" else 0.0)
        world.network.bandwidth = None
        for member in world.members.values():
            if member.state is State.PAUSED:
                member.resume()
            if member.is_busy:
                member.idle()
        world.done(None, "all faults end")

    # Work -----------------------------------------------------------------------------------------

    def burst(self) -> None:
        """Somebody sends a run."""
        if member := self._somebody():
            member.send(self.payloads(member))

    def whisper(self) -> None:
        """Somebody sends to one member of its view."""
        member = self._somebody()
        if member is not None and member.view is not None:
            member.send(self.payloads(member), self._rng.choice(member.view.members))

    def payloads(self, member: Member) -> list[bytes]:
        """A run of messages, no two of which are the same in the whole world."""
        count = min(self._rng.choice(BURSTS), max(1, BURST_BYTES_MAX // self._size))
        first, self._sent = self._sent, self._sent + count
        return [
            f"{member.name} {number}".encode().ljust(self._size, b".")
            for number in range(first, first + count)
        ]

    # Coming and going -----------------------------------------------------------------------------

    def join(self) -> None:
        """One more member, while the others work."""
        alive = [member for member in self._world.members.values() if member.alive]
        names = [name for name in FIRST_NAMES if name not in self._world.members]
        if names and len(alive) < MEMBERS_MAX:
            self._world.start(names[0])

    def crash(self) -> None:
        """Somebody crashes."""
        self._crash(self._somebody())

    def crash_coordinator(self) -> None:
        """The coordinator of somebody's view crashes."""
        member = self._somebody()
        if member is not None and member.view is not None:
            by_address = {other.me: other for other in self._world.members.values()}
            self._crash(by_address.get(member.view.coordinator))

    def crash_sender(self) -> None:
        """Somebody sends and crashes at once, or while its messages are under way."""
        member = self._somebody()
        if member is not None:
            member.send(self.payloads(member))
            self._world.run(self._rng.choice((0.0, 0.0003, 0.01)))
            self._crash(member)

    def _crash(self, member: Member | None) -> None:
        alive = [other for other in self._world.members.values() if other.alive]
        if member is not None and member.alive and len(alive) > 2:
            member.crash()

    def restart(self) -> None:
        """Somebody who is gone, or who runs, starts anew."""
        member = self._rng.choice(list(self._world.members.values()))
        member.restart()

    def leave(self) -> None:
        """Somebody leaves in order."""
        member = self._somebody()
        if member is not None and not member.leaving and len(self._world.running) > 2:
            member.leave()

    def pause(self) -> None:
        """Somebody gets no CPU."""
        if len(self._world.running) > 2 and (member := self._somebody()):
            member.pause()

    def resume(self) -> None:
        """Somebody who was paused goes on."""
        for member in self._world.members.values():
            if member.state is State.PAUSED:
                member.resume()
                return

    def busy(self) -> None:
        """An application stops taking messages."""
        if member := self._somebody():
            member.busy()

    def idle(self) -> None:
        """An application goes on taking messages."""
        for member in self._world.running:
            if member.is_busy:
                member.idle()
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
        self._world.partition(*[side for side in sides if side])

    def heal(self) -> None:
        """The partition ends."""
        self._world.heal()

    def change_loss(self) -> None:
        """All links become better or worse."""
        self._world.loss = self._rng.choice((0.0, 0.05, 0.2, 0.4))

    def drop(self) -> None:
        """Frames of one kind do not get through, perhaps only between two members."""
        kind = self._rng.choice(sorted(frame.kind for frame in FRAME_TYPES.values()))
        source, target = self._rng.choices([*self._world.members, None], k=2)
        rule = self._world.drop(
            lambda f: f.kind == kind and source in (None, f.source) and target in (None, f.target)
        )
        self._rules.append(rule)
        self._world.done(None, f"drop {kind} from {source or 'all'} to {target or 'all'}")

    def undrop(self) -> None:
        """A kind gets through again."""
        if self._rules:
            self._rules.pop(0).remove()

    # Bad input ------------------------------------------------------------------------------------

    def garbage(self) -> None:
        """Random bytes reach everybody."""
        data = self._rng.randbytes(self._rng.choice((0, 1, 31, 32, 200, 2_000)))
        self._world.inject(data, *self._world.running)

    def replay(self) -> None:
        """Datagrams that were sent some time ago arrive again where they were sent to."""
        for data, names in list(self._tap.recent)[:: self._rng.choice((1, 7, 30))]:
            self._world.inject(data, *[self._world.members[name] for name in names])

    def forge(self) -> None:
        """Well-formed frames of another group, and of somebody whom nobody knows."""
        stranger = Address(self._rng.getrandbits(64))
        frame = self._rng.choice((frames.Ack(1 << 40), frames.Alive(), frames.Probe()))
        for group in ("another", "sim"):
            data = b"".join(encode(group_id(group), stranger, [frame]))
            self._world.inject(data, *self._world.running)

    def _somebody(self) -> Member | None:
        ready = [m for m in self._world.running if not m.leaving and m.stack.closed is None]
        return self._rng.choice(ready) if ready else None
