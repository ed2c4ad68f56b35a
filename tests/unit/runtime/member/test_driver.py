"""The driver: which caller attends to a member, and how long it spins before it sleeps."""

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ringcast import presets
from ringcast.core.model.events import Event, ViewChange
from ringcast.runtime.loop.spinning import SPIN_SECONDS, SPIN_SKIPS_MAX
from ringcast.runtime.member.driver import STEP_SECONDS, Driver
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
    driver.spinning.seconds = SPIN_SECONDS  # Also where there is a single core.
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
        driver.spinning.asks = True
        driver.listen(time.monotonic(), lambda: False)
        assert not driver.spinning.asks
    spins = sorted(set(polls))
    assert len(polls) == 2 * len(spins), "each spin polls until its time is over"
    skipped = [later - before - 1 for before, later in pairwise(spins)]
    assert skipped == [1, 2, 4, 8, SPIN_SKIPS_MAX, SPIN_SKIPS_MAX]


def test_a_caller_that_sent_nothing_sleeps_at_once(driver: Driver) -> None:
    driver._caller_waker.poll = lambda: pytest.fail("it spins")  # type: ignore[method-assign]
    driver.listen(time.monotonic() + 0.001, lambda: False)


def test_a_spin_ends_when_something_arrives(driver: Driver) -> None:
    driver._caller_waker.poll = lambda: True  # type: ignore[method-assign]
    driver.spinning.asks = True
    driver.listen(time.monotonic() + SOON, lambda: False)
    assert driver.take(10, "test") == []


def test_a_datagram_without_a_message_does_not_end_the_spin(driver: Driver) -> None:
    polls: list[bool] = []

    def poll() -> bool:
        polls.append(not polls)
        return polls[-1]

    driver._caller_waker.poll = poll  # type: ignore[method-assign]
    driver.spinning.asks = True
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
        driver.spinning.asks = True
        driver.spin_in_loop()
        assert not driver.spinning.asks
        while spins(driver):  # Other tasks of the loop run meanwhile.
            turns.append(loop.time())
            await asyncio.sleep(0)
        assert len(turns) == 3
        driver.spinning.asks = True
        driver.spin_in_loop()
        assert not spins(driver), "the last spin timed out"
        driver.spinning.asks = True
        driver.spin_in_loop()
        assert spins(driver)
        driver.spinning.answered()
        while spins(driver):
            await asyncio.sleep(0)
        driver.spinning.asks = True
        driver.spin_in_loop()
        assert spins(driver), "the last spin was answered"
        driver.detach()

    asyncio.run(run())


def test_only_the_loop_that_attends_spins(driver: Driver) -> None:
    """Another may be closed, or run in another thread."""

    async def attach() -> None:
        driver.attach()

    async def ask() -> None:
        driver.spinning.asks = True
        driver.spin_in_loop()
        assert not spins(driver)

    first = asyncio.new_event_loop()
    first.run_until_complete(attach())
    asyncio.run(ask())
    first.close()
    asyncio.run(ask())


def test_a_thread_that_waits_runs_the_timers(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pace of a sender and the acks of a receiver wake no second thread, and are in time."""
    member, ran = driver.member, list[threading.Thread]()
    run_timers = member.run_timers

    def run() -> None:
        ran.append(threading.current_thread())
        run_timers()

    monkeypatch.setattr(member, "run_timers", run)
    monkeypatch.setattr("ringcast.runtime.member.driver.GRACE_SECONDS", SOON)
    timers, part = member.stack.env.timers, member.stack.parts[0]
    member.act(lambda now: timers.set(part, "test", now + 0.01))
    driver.listen(time.monotonic() + SOON, lambda: bool(ran))
    assert ran == [threading.current_thread()]
    assert not timers.is_set(part, "test")


def test_a_sleeping_caller_is_told_of_a_timer_that_another_thread_sets(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    member, ran = driver.member, list[threading.Thread]()
    run_timers, waits = member.run_timers, threading.Event()

    def run() -> None:
        ran.append(threading.current_thread())
        run_timers()

    def set_timer() -> None:
        waits.wait(SOON)
        member.act(lambda now: timers.set(part, "test", now))

    def has_more() -> bool:
        waits.set()
        return not timers.is_set(part, "test") and bool(ran)

    monkeypatch.setattr(member, "run_timers", run)
    monkeypatch.setattr("ringcast.runtime.member.driver.GRACE_SECONDS", SOON)
    timers, part = member.stack.env.timers, member.stack.parts[0]
    other = threading.Thread(target=set_timer)
    other.start()
    driver.listen(time.monotonic() + SOON, has_more)
    other.join()
    assert set(ran) == {threading.current_thread()}


@pytest.fixture
def idle() -> Iterator[Driver]:
    """A driver whose thread was not started."""
    spec = presets.loopback().replace(Memory())
    driver = Driver(Member("g", spec, "me", receive=True, backlog_bytes=1_000))
    yield driver
    driver.member.close()
    driver._end()


def test_timers_are_run_while_an_event_loop_is_about_to_read(
    idle: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringcast.runtime.member.driver.GRACE_SECONDS", SOON)
    member, ran = idle.member, list[float]()

    def run() -> None:
        ran.append(member.due)
        member.due = float("inf")
        idle._steps += 1  # And the loop has read.
        idle._waker.wake()

    monkeypatch.setattr(member, "run_timers", run)
    idle._attended_until = time.monotonic() + SOON
    member.due = due = time.monotonic() + 0.001
    assert idle._is_attended()
    assert ran == [due]


def test_an_event_loop_has_time_to_step_before_its_timers_are_looked_at_again(
    idle: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has come stays readable while the loop steps, so the driver's thread would spin."""
    waits: list[float] = []
    monkeypatch.setattr(idle._waker, "wait_for_wake", waits.append)
    idle._attended_until = time.monotonic() + SOON
    idle.member.due = 0.0
    with idle.member._receive_lock:
        assert idle._is_attended()
    assert waits == [pytest.approx(STEP_SECONDS)]


def test_the_driver_is_woken_only_where_it_would_come_too_late(idle: Driver) -> None:
    rung: list[str] = []
    idle._waker.wake = lambda: rung.append("driver")  # type: ignore[method-assign]
    idle._caller_waker.wake = lambda: rung.append("caller")  # type: ignore[method-assign]
    now = time.monotonic()
    idle._on_due_sooner(now + 1.0)
    assert not rung, "both are awake, and look before they sleep"
    idle._wakes_at = now + 2.0
    idle._on_due_sooner(now + 3.0)
    assert not rung
    idle._on_due_sooner(now + 1.0)
    assert rung == ["driver"]
    idle._attended_until, idle._runs_timers = float("inf"), True
    idle._caller_wakes_at = now + 1.999
    idle._on_due_sooner(now + 1.998)
    assert rung == ["driver", "caller"]


def test_a_caller_does_not_look_again_and_again_while_another_thread_reads(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has come stays readable until that thread has read it."""
    awaited: list[bool] = []
    lock = driver.member._receive_lock
    monkeypatch.setattr(driver._caller_waker, "wait", lambda timeout: True)
    monkeypatch.setattr(driver.member, "await_step", lambda: awaited.append(lock.locked()))
    with lock:
        driver.listen(time.monotonic() + SOON, lambda: False)
    assert awaited == [True]


def test_a_step_is_awaited(driver: Driver) -> None:
    begun, ended = threading.Event(), list[str]()

    def step() -> None:
        with driver.member._receive_lock:
            begun.set()
            ended.append("step")

    thread = threading.Thread(target=step)
    thread.start()
    assert begun.wait(SOON)
    driver.member.await_step()
    assert ended == ["step"]
    thread.join()
