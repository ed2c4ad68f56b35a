"""A stranger that knows everything but the key is at work all the time: the group does not notice.

It hears every datagram, keeps them all, and sends them again at once, later, after restarts and to
other members; or with flipped bits, cut, extended, and put together from two. Each run is compared
with the same run without the stranger.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ringcast import presets
from ringcast.core.model.events import Event, Suspected
from ringcast.core.wire.seal import COUNTER_AT, SEALED_AT
from ringcast.sim import World
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.network import Fate
from tests.seeds import quick_first

KEY = bytes(range(7, 39))
STRANGER = "stranger"
AT_ONCE = 0.2
"""The part of the traffic that is sent again while it is still on its way."""


class Stranger:
    """Hears everything, and has no key."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._heard: list[bytes] = []
        self._urgent: list[bytes] = []
        self.sent = 0

    def sent_by_others(self, data: bytes) -> None:
        self._heard.append(data)
        if self._rng.random() < AT_ONCE:
            self._urgent.append(data)

    def attack(self, world: World, count: int) -> None:
        """Send some of everything."""
        rng = self._rng
        urgent, self._urgent = self._urgent, []
        old = rng.choices(self._heard, k=count)
        for data in (*urgent, *old, *map(self._forged, old)):
            world.inject(data, rng.choice(world.running), source=STRANGER)
            self.sent += 1

    def _forged(self, data: bytes) -> bytes:
        rng = self._rng
        place = rng.randrange(len(data))
        other = rng.choice(self._heard)
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.randrange(8)
        return rng.choice(
            [
                bytes(flipped),
                data[:place],
                data + rng.randbytes(rng.randrange(1, 99)),
                other[:SEALED_AT] + data[SEALED_AT:],
                data[:COUNTER_AT] + rng.randbytes(8) + data[SEALED_AT:],
                data[:12] + rng.randbytes(8) + data[20:],
            ]
        )


class Ears:
    """What the world tells the stranger, if there is one; and who suspected a living member."""

    def __init__(self, stranger: Stranger | None) -> None:
        self._stranger = stranger
        self.world: World | None = None
        self.suspected = 0
        """Suspicions against members that live."""

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        if self._stranger is not None and parcel.source != STRANGER:
            self._stranger.sent_by_others(parcel.data)

    def given(self, now: float, member: Member, event: Event) -> None:
        assert self.world is not None
        living = {other.me for other in self.world.running}
        self.suspected += isinstance(event, Suspected) and event.member in living

    def done(self, now: float, member: Member | None, what: str) -> None:
        pass


Outcome = dict[str, object]


def play(seed: int, stranger: Stranger | None) -> Outcome:
    """Members talk, one joins, one starts anew, all talk: what each of them has seen of it."""
    ears = Ears(stranger)
    world = World(seed, presets.lan(), key=KEY, observer=ears, addresses="random")
    ears.world = world

    def rest(seconds: float) -> None:
        for _ in range(10):
            if stranger is not None:
                stranger.attack(world, 20)
            world.run(seconds / 10)

    def talk(word: bytes) -> None:
        for member in world.running:
            member.send([b"%s %s %d" % (word, member.name.encode(), n) for n in range(100)])
        rest(0.2)
        world.settle()

    for name in "abc":
        world.join(name)
    talk(b"first")
    rest(5.0)
    world.join("d")
    talk(b"second")
    world.members["b"].restart()
    world.run_until(lambda: world.united, 60.0)
    talk(b"third")
    rest(60.0)
    talk(b"last")
    assert world.check() == []
    return {
        "united": world.united,
        "views": {
            m.name: [sorted(p.name for p in v.peers) for v in m.views] for m in world.running
        },
        "delivered": {m.name: Counter(payloads(m)) for m in world.running},
        "suspicions": ears.suspected,
        "sent where nobody is": world.lost["unreachable"],
    }


def names_in(member: Member) -> list[list[str]]:
    return [sorted(peer.name for peer in view.peers) for view in member.views]


def payloads(member: Member) -> list[bytes]:
    return [bytes(message.payload) for message in member.delivered]


@pytest.mark.parametrize("seed", quick_first(range(8), 1))
def test_a_stranger_with_everything_but_the_key_changes_nothing(seed: int) -> None:
    stranger = Stranger(seed)
    alone, attacked = play(seed, None), play(seed, stranger)
    assert stranger.sent > 2_000
    assert attacked == alone
    assert attacked["united"]
    assert attacked["suspicions"] == 0
    once: dict[str, Counter[bytes]] = attacked["delivered"]  # type: ignore[assignment]
    assert all(count == 1 for counts in once.values() for count in counts.values())
