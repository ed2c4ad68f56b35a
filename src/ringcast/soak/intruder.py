"""A hostile process for a soak: it sends to the ports of members until it is ended.

`python -m ringcast.soak.intruder GROUP SEED HOST:PORT …` sends random bytes and well-formed frames
of a stranger to the group, as datagrams and over connections that end in the middle.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from contextlib import suppress

from ringcast.sim.swarm.hostile import Known, draw_datagram, stranger

PAUSE_SECONDS = 0.002
SIZE_MAX = 1_400
CONNECT_SECONDS = 0.5
CONNECTED = 0.1
"""How often it makes a connection as well."""


def main() -> None:
    """Go on until the soak ends it."""
    group, seed, *places = sys.argv[1:]
    rng = random.Random(int(seed))
    known = stranger(rng, ())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while True:
            host, _, port = rng.choice(places).rpartition(":")
            data = draw_attack(rng, known, group)
            with suppress(OSError):
                sock.sendto(data, (host, int(port)))
            if rng.random() < CONNECTED:
                _connect((host, int(port)), data)
            time.sleep(PAUSE_SECONDS)


def draw_attack(rng: random.Random, known: Known, group: str) -> bytes:
    """What no member sends: noise, or frames of a process that is in no view."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randrange(1, SIZE_MAX))
    return draw_datagram(rng, known, group)


def _connect(place: tuple[str, int], data: bytes) -> None:
    with suppress(OSError), socket.create_connection(place, CONNECT_SECONDS) as sock:
        sock.sendall(data)


if __name__ == "__main__":
    main()
