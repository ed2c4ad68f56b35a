"""On a network with packets of 1,500 bytes datagrams fit a packet, and everything arrives."""

import subprocess
import sys

from tests.runtime.namespaces import lan
from tests.runtime.support import group_name

COUNT, LARGE = 3_000, 300_000

MEMBER = f"""
import sys
from ringcast import presets, sync
from ringcast.core.model.events import ViewChange
role, group_name, address = sys.argv[1:]
spec = presets.lan(address).replace("Discovery", timeout=1.0)
with sync.join(group_name, spec, name=role, timeout=60) as group:
    print(group._member.stack.env.mtu, flush=True)
    while len(group.view) < 2:
        group.take(timeout=1.0)
    if role == "sender":
        group.send_many([n.to_bytes(4, "big") + bytes(996) for n in range({COUNT})], timeout=60)
        group.send(bytes(range(250)) * ({LARGE} // 250), timeout=60)
        group.leave(timeout=60, taking=True)
    else:
        got = []
        while len(got) <= {COUNT}:
            message = group.receive(timeout=60)
            got.append(bytes(message.payload))
        assert got[:-1] == [n.to_bytes(4, "big") + bytes(996) for n in range({COUNT})]
        assert got[-1] == bytes(range(250)) * ({LARGE} // 250)
        print("all of it", flush=True)
"""


def test_a_group_on_a_bridge_sends_datagrams_that_fit_a_packet() -> None:
    name = group_name()
    with lan(2) as network:
        members = [
            subprocess.Popen(
                [*side, sys.executable, "-c", MEMBER, role, name, f"10.77.1.{number}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number, (side, role) in enumerate(
                zip(network.sides, ("receiver", "sender"), strict=True), 1
            )
        ]
        try:
            receiver, sender = (member.communicate(timeout=90)[0] for member in members)
        finally:
            for member in members:
                member.kill()
    assert receiver.split("\n")[:2] == ["1472", "all of it"]
    assert sender.startswith("1472\n")
