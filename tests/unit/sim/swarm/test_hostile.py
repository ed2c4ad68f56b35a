"""The frames of a hostile process: every kind is drawn, and all of them are well-formed."""

from random import Random

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.codec import FRAME_TYPES, decode, group_id
from ringcast.core.wire.frames import FramePiece
from ringcast.errors import Malformed
from ringcast.sim.swarm.draw import draw_hostile
from ringcast.sim.swarm.hostile import STRANGER, draw_datagram, member, stranger

A, B = Address(1), Address(2)
VIEW = View(ViewId(3, A), (Peer(A, "a", "a"), Peer(B, "b", "b")))


def test_every_kind_is_drawn_and_most_are_well_formed() -> None:
    rng, kinds, malformed = Random(1), set[str](), 0
    for known in (stranger(rng, (A, B)), member(B, VIEW)):
        for _ in range(500):
            try:
                source, frames = decode(draw_datagram(rng, known), group_id("sim"))
            except Malformed:
                malformed += 1  # Numbers beyond what frames may carry are drawn, too.
                continue
            assert source == known.me
            kinds |= {frame.kind for frame in frames}
    assert kinds == {kind.kind for kind in FRAME_TYPES.values()} - {FramePiece.kind}
    assert malformed < 500


def test_a_stranger_knows_no_view() -> None:
    known = stranger(Random(1), (A, B))
    assert all(view.coordinator in (known.me, Address(0)) for view in known.views)


def test_some_seeds_have_a_hostile_stranger_and_some_a_hostile_member() -> None:
    drawn = [draw_hostile(seed) for seed in range(500)]
    assert 10 < drawn.count(STRANGER) < 100
    assert 10 < drawn.count("a") + drawn.count("b") < 100
    assert drawn.count("") > 300
