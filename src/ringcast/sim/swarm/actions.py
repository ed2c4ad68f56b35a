"""The actions of a swarm run as lines of text, performed on a world and recorded.

Each line is a verb and its arguments, and holds every random choice, so that a recorded list of
lines repeats the run without the generator that made it:

    start a               send a 50             send a 5 b            run 0.2
    crash a               restart a             leave a               busy a, idle a
    pause a, resume a     partition a b | c     heal                  loss 0.05
    drop DATA a *         undrop                inject 0a1b…          repeat 7
    deafen a

`send a 5 b` sends five messages to b alone; `drop DATA a *` drops DATA frames from a to all, and
`drop * a b` all frames from a to b, until `undrop` removes the oldest rule; `inject` sends bytes to
all running members; `repeat 7` sends each seventh of the last datagrams again; after `deafen a`
multicast does not reach a until all faults end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ringcast.core.model.address import Address
from ringcast.core.model.events import Event
from ringcast.sim.engine.faults import Drop, Parcel
from ringcast.sim.engine.member import Member, ProcessState
from ringcast.sim.engine.network import Fate
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.engine.world import World
from ringcast.sim.swarm.kept_states import KeptStates

ANY, NOTHING = "*", "-"
"""Stand for any kind or member in `drop`, and for no bytes in `inject`."""
RECENT_MAX = 100


class ChaosListener:
    """Keeps the last datagrams, to be sent again; passes everything on to another listener."""

    def __init__(self, inner: WorldListener | None) -> None:
        self.recent: deque[tuple[bytes, list[str]]] = deque(maxlen=RECENT_MAX)
        """The last datagrams, each with the names of its receivers."""
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


class Actions:
    """Performs actions on a world; `recorded` lists those that it has performed."""

    def __init__(
        self,
        world: World,
        listener: ChaosListener,
        size: int,
        replicas: KeptStates | None = None,
    ) -> None:
        self.recorded: list[str] = []
        self.size = size
        """Bytes of each message."""
        self._world = world
        self._listener = listener
        self._replicas = replicas
        self._sent = 0
        self._rules: list[Drop] = []

    def do(self, verb: str, *arguments: object) -> None:
        """Perform an action; it is recorded first, in case the stack raises."""
        words = [str(argument) for argument in arguments]
        self.recorded.append(" ".join([verb, *words]))
        perform: Callable[[list[str]], None] = getattr(self, f"_do_{verb}")
        perform(words)

    def replay(self, line: str) -> None:
        """Perform a recorded action, unless the world is not in a state for it any more."""
        verb, *words = line.split()
        if self._applies(verb, words):
            self.do(verb, *words)

    def send(self, member: Member, count: int, to: str = "") -> None:
        """Send messages, no two of which are the same in the whole world; not recorded."""
        first, self._sent = self._sent, self._sent + count
        payloads = [
            f"{member.name} {number}".encode().ljust(self.size, b".")
            for number in range(first, first + count)
        ]
        member.send(payloads, self._address(to) if to else None)

    def name(self, address: Address) -> str:
        """How `send` names a receiver: by its name, or by the address of an earlier life."""
        members = self._world.members.values()
        return next((m.name for m in members if m.me == address), f"@{int(address):x}")

    def _address(self, name: str) -> Address:
        if name.startswith("@"):
            return Address(int(name[1:], 16))
        return self._world.members[name].me

    def _applies(self, verb: str, words: list[str]) -> bool:
        """Whether an action makes sense now; one that does not is left out of a replay."""
        members = self._world.members
        match verb:
            case "start":
                return words[0] not in members
            case "undrop":
                return bool(self._rules)
            case "partition":
                return all(name in members for name in words if name != "|")
            case "send" | "crash" | "restart" | "leave" | "pause" | "resume" | "busy" | "idle":
                to = words[2] if len(words) > 2 else "@"
                there = words[0] in members and (to in members or to.startswith("@"))
                return there and _is_ready(members[words[0]], verb)
        return True

    # Verbs ----------------------------------------------------------------------------------------

    def _do_start(self, words: list[str]) -> None:
        member = self._world.start(words[0], state=self._replicas is not None)
        if self._replicas is not None:
            self._replicas.add(member, self._world.now)

    def _do_run(self, words: list[str]) -> None:
        self._world.run(float(words[0]))

    def _do_send(self, words: list[str]) -> None:
        name, count, *to = words
        self.send(self._world.members[name], int(count), *to)

    def _do_crash(self, words: list[str]) -> None:
        self._world.members[words[0]].crash()

    def _do_restart(self, words: list[str]) -> None:
        member = self._world.members[words[0]]
        member.restart()
        if self._replicas is not None:
            self._replicas.add(member, self._world.now)

    def _do_leave(self, words: list[str]) -> None:
        self._world.members[words[0]].leave()

    def _do_pause(self, words: list[str]) -> None:
        self._world.members[words[0]].pause()

    def _do_resume(self, words: list[str]) -> None:
        self._world.members[words[0]].resume()

    def _do_busy(self, words: list[str]) -> None:
        self._world.members[words[0]].busy()

    def _do_idle(self, words: list[str]) -> None:
        self._world.members[words[0]].idle()

    def _do_partition(self, words: list[str]) -> None:
        self._world.partition(*[side.split() for side in " ".join(words).split("|")])

    def _do_heal(self, words: list[str]) -> None:
        self._world.heal()

    def _do_loss(self, words: list[str]) -> None:
        self._world.loss = float(words[0])

    def _do_drop(self, words: list[str]) -> None:
        kind, *ends = words
        source, target = (None if end == ANY else end for end in ends)
        rule = self._world.drop(
            lambda f: (
                kind in (ANY, f.kind) and source in (None, f.source) and target in (None, f.target)
            )
        )
        self._rules.append(rule)
        self._world.done(None, f"drop {kind} from {source or 'all'} to {target or 'all'}")

    def _do_undrop(self, words: list[str]) -> None:
        if self._rules:
            self._rules.pop(0).remove()

    def _do_deafen(self, words: list[str]) -> None:
        (name,) = words
        for other in self._world.members:
            self._world.link(other, name).multicast_loss = 1.0
        self._world.done(None, f"multicast no longer reaches {name}")

    def _do_inject(self, words: list[str]) -> None:
        data = b"" if words[0] == NOTHING else bytes.fromhex(words[0])
        self._world.inject(data, *self._world.running)

    def _do_repeat(self, words: list[str]) -> None:
        for data, names in list(self._listener.recent)[:: int(words[0])]:
            self._world.inject(data, *[self._world.members[name] for name in names])


def _is_ready(member: Member, verb: str) -> bool:
    """Whether this can be done to the member in its state."""
    match verb:
        case "send":
            return member.state is ProcessState.RUNNING and member.stack.closed is None
        case "leave":
            running = member.state is ProcessState.RUNNING and member.stack.closed is None
            return running and not member.leaving
        case "crash":
            return member.alive
        case "pause":
            return member.state is ProcessState.RUNNING
        case "resume":
            return member.state is ProcessState.PAUSED
        case "idle":
            return member.is_busy
    return True
