"""A member knows whether its group is open or closed, and says so without the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcast import presets
from ringcast.closed.keys import generate, load_keys
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import UnicastAck
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.placement import Placement
from ringcast.core.wire.seal import BodySeal, Seal
from ringcast.errors import ConfigError, LocalError
from ringcast.runtime.member.security import NO_KEYS, Credentials, Security
from ringcast.runtime.net.inprocess import MemoryTransport
from ringcast.spec import StackSpec

ME = Address(7)


class Recording(MemoryTransport):
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []
        self.secured = self.used = 0

    def open(self, me: Address, group: int) -> None:
        self.groups.append(group)

    def secure(self, guard: object, /) -> None:
        self.secured += 1

    def use(self, placement: object, /) -> None:
        self.used += 1


def test_an_open_group_says_so() -> None:
    transport = Recording()
    security = Security(NO_KEYS, "g", ME, transport)
    security.use(Placement())
    assert (transport.groups, transport.secured, transport.used) == ([group_id("g")], 0, 1)
    assert "open" in str(security)
    assert security.facts() == {"is_closed_group": False, "key_ids": []}
    assert security.peer_key_ids([ME]) == {}
    with pytest.raises(LocalError, match="key_file"):
        security.reload()


def test_a_closed_group_shows_its_key_ids_and_reloads_them(tmp_path: Path) -> None:
    path, other = tmp_path / "a.key", tmp_path / "b.key"
    key, new = generate(path), generate(other)
    transport = Recording()
    security = Security(Credentials(load_keys(path), path), "g", ME, transport)
    security.use(Placement())
    assert transport.groups != [group_id("g")]
    assert (transport.secured, transport.used) == (1, 0)
    assert str(security) == f"the group is closed (key id {key.id:02x})"
    assert security.peer_key_ids([ME]) == {}
    peer = GroupSeal(load_keys(path), "g", Address(8))
    buffers = encode(group_id("g"), Address(8), [UnicastAck(1, 2)])
    (sealed,) = peer.seal([Datagram(None, buffers, sum(map(len, buffers)))])
    assert security.seal is not None
    security.seal.open(b"".join(sealed.buffers))
    assert security.peer_key_ids([ME, Address(8)]) == {str(Address(8)): f"{key.id:02x}"}
    path.write_text(other.read_text() + path.read_text())
    security.reload()
    assert security.facts()["key_ids"] == [f"{new.id:02x}", f"{key.id:02x}"]
    assert f"also opens {key.id:02x}" in str(security)
    assert transport.secured == 2


def test_a_file_that_cannot_be_read_anew_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    key = generate(path)
    security = Security(Credentials(load_keys(path), path), "g", ME, Recording())
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod"):
        security.reload()
    assert security.facts()["key_ids"] == [f"{key.id:02x}"]


class Sealing(StackSpec):
    """A stack with a protocol that seals datagrams."""

    made = BodySeal()

    def make_seal(self, group: str, me: Address, given: Seal | None = None) -> Seal:
        return self.made


def test_a_protocol_of_the_stack_that_seals_closes_the_group() -> None:
    transport = Recording()
    security = Security(NO_KEYS, "g", ME, transport, spec=Sealing(*presets.lan()))
    security.use(Placement())
    assert security.seal is Sealing.made
    assert (transport.groups, transport.secured, transport.used) == ([group_id("g")], 0, 0)
    assert security.facts() == {"is_closed_group": True, "key_ids": []}
    assert "a protocol of the stack" in str(security)
    assert security.peer_key_ids([ME]) == {}
    with pytest.raises(LocalError, match="key_file"):
        security.reload()
