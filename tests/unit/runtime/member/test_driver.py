"""The driver: which caller attends to a member, and how long it spins before it sleeps."""

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ringcast import presets
from ringcast.core.model.events import Event, ViewChange
from ringcast.runtime.member.driver import SPIN_SECONDS, SPIN_SKIPS_MAX, Driver
from ringcast.runtime.member.member import Member
from ringcast.transports import Memory

SOON = 30.0


class SteppingClock:
    """A clock that goes on by two fifths of a spin each time it is read."""

    def __init__(self) -> None:
        self._now = 1_000.0

    def __call__(self) -> float:
        self._now += SPIN_SECONDS * 0.4
        return self._now


@pytest.fixture
def driver() -> Iterator[Driver]:
    """The driver of a member that is alone in its group, and has nothing to take."""
    spec = presets.loopback().replace(Memory())
    driver = Driver(Member("g", spec, "me", receive=True, backlog_bytes=1_000), SteppingClock())
    driver._spin_seconds = SPIN_SECONDS  # Also where there is a single core.
    driver.start()
    events: list[Event] = []
    until = time.monotonic() + SOON
    while not events and time.monotonic() < until:
        driver.listen(until, lambda: False)
        events += driver.take(10, "test")
    assert [type(event) for event in events] == [ViewChange]
    yield driver
    driver.member.close()


def test_spins_that_time_out_are_skipped_ever_longer(driver: Driver) -> None:
    polls: list[int] = []

    def poll() -> bool:
        polls.append(question)
        return False

    driver._caller_waker.poll = poll  # type: ignore[method-assign]
    for question in range(60):  # noqa: B007
        driver.asks = True
        driver.listen(time.monotonic(), lambda: False)
        assert not driver.asks
    spins = sorted(set(polls))
    assert len(polls) == 2 * len(spins), "each spin polls until its time is over"
    skipped = [later - before - 1 for before, later in pairwise(spins)]
    assert skipped == [1, 2, 4, 8, SPIN_SKIPS_MAX, SPIN_SKIPS_MAX]


def test_a_caller_that_sent_nothing_sleeps_at_once(driver: Driver) -> None:
    driver._caller_waker.poll = lambda: pytest.fail("it spins")  # type: ignore[method-assign]
    driver.listen(time.monotonic() + 0.001, lambda: False)


def test_a_spin_ends_when_something_arrives(driver: Driver) -> None:
    driver._caller_waker.poll = lambda: True  # type: ignore[method-assign]
    driver.asks = True
    driver.listen(time.monotonic() + SOON, lambda: False)
    assert driver.take(10, "test") == []


def test_a_datagram_without_a_message_does_not_end_the_spin(driver: Driver) -> None:
    polls: list[bool] = []

    def poll() -> bool:
        polls.append(not polls)
        return polls[-1]

    driver._caller_waker.poll = poll  # type: ignore[method-assign]
    driver.asks = True
    driver.listen(time.monotonic() + SOON, lambda: False)
    assert driver.take(10, "test") == []
    driver.listen(time.monotonic(), lambda: False)
    assert len(polls) > 1


def spins(driver: Driver) -> bool:
    """Whether its event loop spins."""
    return driver._is_loop_spinning


def test_an_event_loop_spins_after_a_message_and_backs_off(driver: Driver) -> None:
    async def run() -> None:
        loop, turns = asyncio.get_running_loop(), list[float]()
        driver.attach()
        driver.asks = True
        driver.spin_in_loop()
        assert not driver.asks
        while spins(driver):  # Other tasks of the loop run meanwhile.
            turns.append(loop.time())
            await asyncio.sleep(0)
        assert len(turns) == 3
        driver.asks = True
        driver.spin_in_loop()
        assert not spins(driver), "the last spin timed out"
        driver.asks = True
        driver.spin_in_loop()
        assert spins(driver)
        driver.answered()
        while spins(driver):
            await asyncio.sleep(0)
        driver.asks = True
        driver.spin_in_loop()
        assert spins(driver), "the last spin was answered"
        driver.detach()

    asyncio.run(run())


def test_only_the_loop_that_attends_spins(driver: Driver) -> None:
    """Another may be closed, or run in another thread."""

    async def attach() -> None:
        driver.attach()

    async def ask() -> None:
        driver.asks = True
        driver.spin_in_loop()
        assert not spins(driver)

    first = asyncio.new_event_loop()
    first.run_until_complete(attach())
    asyncio.run(ask())
    first.close()
    asyncio.run(ask())
