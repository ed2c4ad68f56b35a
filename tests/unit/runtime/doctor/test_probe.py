"""A stranger who asks, is answered, and changes nothing."""

import pytest

from ringcast import sync
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Discover, Present
from ringcast.runtime.doctor.probe import DiscoveryProbe, ask_repeatedly
from ringcast.transports import Memory
from tests.runtime.support import SOON, group_name, memory


@pytest.mark.parametrize("direct", [True, False])
def test_a_member_answers_one_and_all(direct: bool) -> None:
    name = group_name()
    with (
        sync.join(name, memory(), name="ann", timeout=SOON) as group,
        DiscoveryProbe(Memory(), group_id(name)) as probe,
    ):
        target = group.endpoint if direct else None
        ask_repeatedly([probe], lambda: probe.ask(target), SOON, lambda: bool(probe.present))
        answer = probe.present[group.me]
        assert (answer.peer.name, answer.view) == ("ann", group.view.id)
        assert group.view.members == (group.me,)


def test_a_member_of_another_group_is_heard() -> None:
    with (
        DiscoveryProbe(Memory(), group_id("mine")) as probe,
        sync.join(group_name(), memory(), timeout=SOON) as group,
    ):
        ask_repeatedly([probe], lambda: probe.ask(None), SOON, lambda: bool(probe.other_groups))
        assert probe.other_groups == {group.me}
        assert not probe.present


def test_nobody_lets_it_go_first() -> None:
    """A joiner waits for others with lower addresses; members' own have 63 bits."""
    with DiscoveryProbe(Memory(), 1) as probe:
        assert Address(1 << 63) <= probe.me < 1 << 64


def test_what_is_remembered_of_others_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.doctor.probe.HEARD_MAX", 3)
    with DiscoveryProbe(Memory(), 1) as probe:
        for number in range(1, 11):
            peer = Peer(Address(number), "", "a:1")
            for group in (1, 2):
                frames = [Present(peer, NO_VIEW, peer, 0, 0), Discover(peer, NO_VIEW, 1)]
                probe._hear(b"".join(encode(group, peer.address, frames)))
        assert len(probe.present) == len(probe.askers) == len(probe.other_groups) == 3
