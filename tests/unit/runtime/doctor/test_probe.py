"""A stranger who asks, is answered, and changes nothing."""

import pytest

from ringcast import sync
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import group_id
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
