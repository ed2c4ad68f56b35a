"""Giving state: what newcomers may ask of a member."""

import pytest

from ringcast import presets
from ringcast.core.model.address import Address
from ringcast.core.model.events import StateAsked
from ringcast.services.state_provider import QUEUED_MAX, TRANSFERS_MAX
from ringcast.sim import World


def test_one_newcomer_cannot_fill_the_applications_queue() -> None:
    world = World(1, presets.lan())
    a, b, c = world.join("a", "b", "c")
    correlator = a.service.correlator
    provider, waiting = correlator.provider, a.stack._inbox.events
    for id in range(1, 1_001):
        provider.asked(b.me, id)
    assert len(waiting) == QUEUED_MAX
    assert len(correlator.outgoing) == 1_000 - QUEUED_MAX  # It was told so each time.
    provider.asked(c.me, 1)
    asked = [event for event in waiting if isinstance(event, StateAsked)]
    assert provider.find(asked[-1]) is not None
    assert [provider.find(event) for event in asked[:-1]] == [None] * QUEUED_MAX
    waiting.clear()
    provider.asked(b.me, 2_000)  # The application has come to all that it asked before.
    assert list(waiting) == [StateAsked(b.me, 2_000)]


def test_newcomers_that_wait_for_the_state_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.services.state_provider.WAITING_MAX", 5)
    (a,) = World(1, presets.lan()).join("a")
    provider = a.service.correlator.provider
    for number in range(100):
        provider.asked(Address(1_000 + number), 1)
    assert len(provider.active) == TRANSFERS_MAX
    assert len(provider._waiting) == 5
