"""A replay window refuses exactly what was marked or is too old."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ringcast.closed.replay import WINDOW, ReplayWindow


@given(st.lists(st.integers(1, 3 * WINDOW), max_size=60))
def test_a_window_agrees_with_a_set_of_counters(counters: list[int]) -> None:
    window, marked = ReplayWindow(), set[int]()
    for counter in counters:
        high = max(marked, default=0)
        is_used = counter in marked or (bool(marked) and counter <= high - WINDOW)
        assert window.is_used(counter) == is_used
        if not is_used:
            window.mark(counter)
            marked.add(counter)


@given(st.integers(0, 2**32))
def test_a_window_agrees_with_a_set_where_most_come_in_order(seed: int) -> None:
    rng, window, marked, high = Random(seed), ReplayWindow(), set[int](), 0
    for _ in range(300):
        step = rng.choice([1, 1, 1, 1, 2, rng.randrange(1, 2 * WINDOW), -rng.randrange(WINDOW + 9)])
        counter = max(1, high + step)
        is_used = counter in marked or (bool(marked) and counter <= high - WINDOW)
        assert window.is_used(counter) == is_used
        if not is_used:
            window.mark(counter)
            marked.add(counter)
            high = max(high, counter)


def test_the_edge_of_the_window() -> None:
    window = ReplayWindow()
    window.mark(10 * WINDOW)
    assert not window.is_used(9 * WINDOW + 1)
    assert window.is_used(9 * WINDOW)


def test_a_window_of_a_former_sender_refuses_all_it_sent() -> None:
    window = ReplayWindow(500)
    assert all(window.is_used(counter) for counter in range(1, 501))
    assert not window.is_used(501)
