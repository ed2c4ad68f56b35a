"""Timers: one deadline per owner and name, in the order of time, then of setting."""

from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.stack.timers import NEVER, Timers


def drain(timers: Timers[str], now: float) -> list[tuple[str, str]]:
    due = []
    while (timer := timers.pop_due(now)) is not None:
        due.append(timer)
    return due


def test_without_timers_nothing_is_due() -> None:
    timers: Timers[str] = Timers()
    assert timers.deadline == NEVER
    assert timers.pop_due(1e9) is None


def test_due_in_order_and_ties_by_setting() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", "late", 3.0)
    timers.set("b", "tie", 1.0)
    timers.set("a", "tie", 1.0)
    assert timers.deadline == 1.0
    assert drain(timers, 2.0) == [("b", "tie"), ("a", "tie")]
    assert drain(timers, 2.0) == []
    assert timers.deadline == 3.0


def test_setting_again_moves_it_and_earlier_only_forward() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", "tick", 1.0)
    timers.set("a", "tick", 5.0)
    assert drain(timers, 4.0) == []
    timers.set_earlier("a", "tick", 9.0)
    assert timers.deadline == 5.0
    timers.set_earlier("a", "tick", 2.0)
    assert timers.deadline == 2.0


def test_a_cancelled_timer_is_gone() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", "tick", 1.0)
    timers.cancel("a", "tick")
    timers.cancel("a", "tick")
    assert not timers.is_set("a", "tick")
    assert timers.deadline == NEVER


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.booleans()), max_size=300))
def test_timers_are_due_as_a_table_says(steps: list[tuple[str, int, bool]]) -> None:
    timers: Timers[str] = Timers()
    table: dict[str, tuple[int, int]] = {}
    for place, (name, at, cancel) in enumerate(steps):
        if cancel:
            timers.cancel("x", name)
            table.pop(name, None)
        else:
            timers.set("x", name, at)
            table[name] = (at, place)
    assert timers.deadline == min((at for at, _ in table.values()), default=NEVER)
    expected = [("x", name) for name in sorted(table, key=lambda name: table[name])]
    assert drain(timers, 99) == expected
