"""Callers that wait: found by their call, and by the thread or task that waits."""

from ringcast.runtime.loop.callers import WaitingCallers
from ringcast.runtime.loop.waiters import ThreadWaiter


def waiter(who: str) -> ThreadWaiter:
    made = ThreadWaiter()
    made.who = who
    return made


def test_a_caller_is_found_by_its_thread_until_its_last_call_ends() -> None:
    callers = WaitingCallers()
    callers.add(1, waiter("ann"))
    callers.add(2, waiter("ann"))
    assert "ann" in callers
    callers.pop(1)
    assert "ann" in callers
    callers.pop(2)
    assert "ann" not in callers
    assert not callers
    assert callers.pop(2) is None


def test_the_first_of_a_thread_is_preferred_to_the_first_of_all() -> None:
    callers = WaitingCallers()
    callers.add(1, waiter("ann"))
    callers.add(2, waiter("bob"))
    assert callers.first("bob") == 2
    assert callers.first("eve") == 1


def test_all_callers_are_told() -> None:
    callers, waiters = WaitingCallers(), [waiter("ann"), waiter("bob")]
    for number, one in enumerate(waiters):
        callers.add(number, one)
    callers.tell_all()
    assert [one.told for one in waiters] == [True, True]
    assert not callers
    assert "ann" not in callers
