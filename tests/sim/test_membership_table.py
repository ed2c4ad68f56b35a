"""What members do in whole groups is what the table of transitions says."""

import pytest

from ringcast import presets
from ringcast.control.membership.part import MembershipPart
from ringcast.control.membership.transitions import TRANSITIONS, State
from ringcast.sim import World


@pytest.mark.parametrize("seed", range(3))
def test_members_move_only_between_states_as_the_table_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: set[tuple[State, str, State]] = set()
    real = MembershipPart.handle

    def handle(self: MembershipPart, event: str, *arguments: object) -> None:
        before = self.state
        real(self, event, *arguments)
        moves.add((before, event, self.state))

    monkeypatch.setattr(MembershipPart, "handle", handle)
    world = World(seed=seed, spec=presets.lan())
    a, b, *_ = world.join(*"abcdef")
    world.partition("ab")
    world.run(10.0)
    world.heal()
    world.run(10.0)
    a.crash()
    world.run(10.0)
    b.leave()
    world.run(10.0)
    assert len({m.view for m in world.running}) == 1
    assert len({after for *_, after in moves}) >= 6
    for before, event, after in moves:
        row = TRANSITIONS.get((before, event))
        assert after == before or (row is not None and after in row.leads_to), (before, event)
