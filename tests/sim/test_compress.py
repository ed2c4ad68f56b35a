"""Compression in simulated groups: what it carries over a narrow link."""

import json
from random import Random

from ringcast import presets
from ringcast.layers.compress.layer import Compress
from ringcast.sim import World
from ringcast.spec import StackSpec

LINK = 20e6 / 8
"""Bytes per second of a link of 20 Mbit/s."""
COUNT = 20_000


def records() -> list[bytes]:
    """Events as an application would log them."""
    dice = Random(1)
    return [
        json.dumps(
            {
                "id": f"{dice.getrandbits(64):016x}",
                "at": 1_700_000_000_000 + 37 * n,
                "user": f"user-{dice.randint(1, 5_000)}",
                "action": dice.choice(["view", "click", "buy", "leave"]),
                "path": f"/shop/items/{dice.randint(1, 900)}",
                "status": dice.choice([200, 200, 200, 304, 404]),
                "took_ms": round(dice.uniform(1, 90), 2),
                "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            }
        ).encode()
        for n in range(COUNT)
    ]


def rate(spec: StackSpec, messages: list[bytes]) -> float:
    """How many messages per second a sender gets to two receivers over the link."""
    world = World(seed=3, spec=spec, bandwidth=LINK)
    a, b, _ = world.join("a", "b", "c")
    began = world.now
    for first in range(0, COUNT, 100):
        a.send(messages[first : first + 100])
    world.run_until(lambda: all(len(m.delivered) == COUNT for m in (a, b)), 60, "all messages")
    assert [message.payload for message in b.delivered] == messages
    assert world.check() == []
    return COUNT / (world.now - began)


def test_json_over_20_megabits_is_three_times_as_many_messages() -> None:
    messages = records()
    plain, packed = presets.lan(), presets.lan().insert(Compress())
    assert rate(packed, messages) >= 3 * rate(plain, messages)


def test_random_bytes_go_as_fast_as_without() -> None:
    dice = Random(2)
    messages = [dice.randbytes(200) for _ in range(COUNT)]
    plain, packed = presets.lan(), presets.lan().insert(Compress())
    assert rate(packed, messages) >= 0.99 * rate(plain, messages)
