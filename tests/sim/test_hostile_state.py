"""A newcomer that gets service messages about its state in an order that no provider sends."""

import pytest

from ringcast import presets
from ringcast.core.model.batch import SERVICE, Batch
from ringcast.services.messages import (
    ServiceMessage,
    StateBegin,
    StateEnd,
    StatePiece,
    StateRefusal,
    write,
)
from ringcast.services.state_requester import Stage
from ringcast.sim import World


@pytest.mark.parametrize(
    "kinds",
    ["begin piece refuse", "begin piece piece refuse end", "piece", "begin begin piece end refuse"],
)
def test_any_order_of_state_messages_in_one_run_is_survived(kinds: str) -> None:
    world = World(1, presets.lan())
    (a,) = world.join("a")
    late = world.start("late", state=True)
    correlator = late.service.correlator
    requester = correlator.requester
    assert requester is not None
    world.run_until(lambda: requester.stage is Stage.ASKING, 10.0)
    view = late.stack.view
    assert view is not None
    attempt = requester.attempt
    made: dict[str, ServiceMessage] = {
        "begin": StateBegin(attempt, view.id, ()),
        "piece": StatePiece(attempt),
        "refuse": StateRefusal(attempt, 1),
        "end": StateEnd(attempt),
    }
    payloads = [write(made[kind], b"x") for kind in kinds.split()]
    nbytes = sum(map(len, payloads))
    run = Batch(a.me, payloads, nbytes, dest=late.me, first=1, flags=SERVICE)
    correlator.service_messages(run)
