"""The check of total order: what members delivered in a view, compared."""

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.view import ViewId
from ringcast.sim.checks.total_order import TotalOrder

A, B, C = (Address(n) for n in (1, 2, 3))
V1, V2, V3 = (ViewId(n, A) for n in (1, 2, 3))
NAMES = {A: "a", B: "b", C: "c"}


class Bench:
    """A check, and what it has reported."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.order = TotalOrder(lambda name, text: self.found.append((name, text)))

    def give(self, member: Address, *runs: tuple[Address, int, int]) -> None:
        for sender, first, last in runs:
            batch = Batch(sender, [b""] * (last - first + 1), 0, first=first)
            self.order.delivered(NAMES[member], member, V1, batch)

    def go_on(self, member: Address, view: ViewId = V2) -> None:
        self.order.passed(NAMES[member], member, V1, view)


def test_batches_may_be_cut_as_they_like() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 4), (B, 1, 2))
    bench.give(B, (A, 1, 1), (A, 2, 4), (B, 1, 1), (B, 2, 2))
    bench.order.compare(V1, [A, B])
    bench.go_on(A)
    bench.go_on(B)
    assert bench.found == []


def test_members_that_go_on_together_have_the_same_sequence() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2), (B, 1, 2))
    bench.give(B, (B, 1, 2), (A, 1, 2))
    bench.go_on(A)
    bench.go_on(B)
    ((name, text),) = bench.found
    assert name == "b"
    assert text.startswith("delivered messages 1-2 of")
    assert "after 0 runs, where a delivered messages 1-2" in text


def test_a_member_that_goes_on_with_less_is_found() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2), (B, 1, 2))
    bench.give(B, (A, 1, 2))
    bench.go_on(A)
    bench.go_on(B)
    bench.go_on(C)
    assert [name for name, _ in bench.found] == ["b", "c"]
    assert bench.found[0][1].startswith("delivered nothing after 1 runs")


def test_members_that_go_on_apart_may_differ() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2), (B, 1, 2))
    bench.give(B, (B, 1, 2), (A, 1, 2))
    bench.go_on(A, V2)
    bench.go_on(B, V3)
    assert bench.found == []


def test_within_a_view_one_is_a_prefix_of_the_other() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2), (B, 1, 5), (A, 3, 3))
    bench.give(B, (A, 1, 2), (B, 1, 3))
    bench.give(C, (A, 1, 2))
    bench.order.compare(V1, [A, B, C])
    assert bench.found == []


def test_a_run_that_ends_early_and_another_that_follows_is_no_prefix() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2), (B, 1, 5), (A, 3, 3))
    bench.give(B, (A, 1, 2), (B, 1, 3), (A, 3, 3))
    bench.order.compare(V1, [A, B])
    ((name, text),) = bench.found
    assert name == "b"
    assert "messages 1-3" in text
    assert "messages 1-5" in text


def test_a_view_that_is_over_is_forgotten() -> None:
    bench = Bench()
    bench.give(A, (A, 1, 2))
    bench.give(B, (B, 1, 2))
    bench.order.forget(V1)
    bench.order.compare(V1, [A, B])
    bench.go_on(B)
    assert bench.found == []
