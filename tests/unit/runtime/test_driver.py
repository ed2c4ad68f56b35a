"""Who attends to a member, and how long it looks before it sleeps."""

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ringcast import presets
from ringcast.core.events import Event, ViewChange
from ringcast.runtime.driver import MOMENT, SKIPPED_MAX, Driver
from ringcast.runtime.member import Member
from ringcast.transports import Memory

SOON = 30.0


@pytest.fixture
def driver() -> Iterator[Driver]:
    """The driver of a member that is alone in its group, and has nothing to take."""
    spec = presets.loopback().replace(Memory())
    driver = Driver(Member("g", spec, "me", receive=True, backlog_bytes=1_000))
    driver._moment = MOMENT  # Also where there is a single core.
    driver.start()
    events: list[Event] = []
    until = time.monotonic() + SOON
    while not events and time.monotonic() < until:
        driver.listen(until, lambda: False)
        events += driver.take(10, "test")
    assert [type(event) for event in events] == [ViewChange]
    yield driver
    driver.member.close()


def test_a_question_is_waited_for_awake_only_where_answers_come_at_once(driver: Driver) -> None:
    looks: list[float] = []

    def look() -> bool:
        looks.append(time.monotonic())
        return False

    driver._guest_seat.look = look  # type: ignore[method-assign]
    looked = []
    for question in range(60):
        looks.clear()
        driver.asks = True
        driver.listen(time.monotonic(), lambda: False)
        assert not driver.asks
        if looks:
            looked.append(question)
    pauses = [later - before - 1 for before, later in pairwise(looked)]
    assert pauses == [1, 2, 4, 8, SKIPPED_MAX, SKIPPED_MAX]


def test_who_has_asked_nothing_sleeps_at_once(driver: Driver) -> None:
    driver._guest_seat.look = lambda: pytest.fail("it looked")  # type: ignore[method-assign]
    driver.listen(time.monotonic() + 0.001, lambda: False)


def test_what_is_there_is_seen_without_sleep(driver: Driver) -> None:
    driver._guest_seat.look = lambda: True  # type: ignore[method-assign]
    driver.asks = True
    driver.listen(time.monotonic() + SOON, lambda: False)
    assert driver.take(10, "test") == []


def test_what_comes_and_is_no_message_does_not_end_the_look(driver: Driver) -> None:
    looks: list[float] = []

    def look() -> bool:
        looks.append(time.monotonic())
        return len(looks) == 1

    driver._guest_seat.look = look  # type: ignore[method-assign]
    driver.asks = True
    driver.listen(time.monotonic() + SOON, lambda: False)
    assert driver.take(10, "test") == []
    driver.listen(time.monotonic(), lambda: False)
    assert len(looks) > 1


def stays(driver: Driver) -> bool:
    """Whether its event loop does not fall asleep."""
    return driver._stays


def test_an_event_loop_turns_while_an_answer_is_looked_for(driver: Driver) -> None:
    async def run() -> None:
        loop, turns = asyncio.get_running_loop(), list[float]()
        driver.attach()
        driver.asks = True
        driver.stay_awake()
        assert not driver.asks
        while stays(driver):  # Others of the loop have their turns meanwhile.
            turns.append(loop.time())
            await asyncio.sleep(0)
        assert len(turns) > 1
        driver.asks = True
        driver.stay_awake()
        assert not stays(driver), "the last one was in vain"
        driver.asks = True
        driver.stay_awake()
        assert stays(driver)
        driver.answered()
        while stays(driver):
            await asyncio.sleep(0)
        driver.asks = True
        driver.stay_awake()
        assert stays(driver), "the last one was not"
        driver.detach()

    asyncio.run(run())


def test_only_the_loop_that_attends_stays_awake(driver: Driver) -> None:
    """Another may be closed, or run in another thread."""

    async def attach() -> None:
        driver.attach()

    async def ask() -> None:
        driver.asks = True
        driver.stay_awake()
        assert not stays(driver)

    first = asyncio.new_event_loop()
    first.run_until_complete(attach())
    asyncio.run(ask())
    first.close()
    asyncio.run(ask())
