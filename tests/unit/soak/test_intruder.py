"""The hostile process of a soak sends what no member sends."""

import random
from contextlib import suppress

from ringcast.core.wire.codec import decode, group_id
from ringcast.errors import Malformed
from ringcast.sim.swarm.hostile import stranger
from ringcast.soak.intruder import draw_attack


def test_it_sends_noise_and_frames_of_a_stranger_to_the_group() -> None:
    rng = random.Random(1)
    known = stranger(rng, ())
    sources = set()
    for _ in range(50):
        with suppress(Malformed):
            sources.add(decode(draw_attack(rng, known, "soak"), group_id("soak"))[0])
    assert sources == {known.me}
