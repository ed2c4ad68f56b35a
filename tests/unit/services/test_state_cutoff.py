"""What a newcomer's application is not given: what its state contains, and nothing else."""

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Event, StateTaken, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.services.state_cutoff import StateCutoff

A, B, C = Address(1), Address(2), Address(3)


def view(number: int) -> ViewChange:
    peers = tuple(Peer(address, str(address), "") for address in (A, B, C))
    return ViewChange(View(ViewId(number, A), peers), (), ())


def run(sender: Address, first: int, last: int, dest: Address | None = None) -> Batch:
    payloads = [b"%d" % seqno for seqno in range(first, last + 1)]
    return Batch(sender, payloads, sum(map(len, payloads)), first=first, dest=dest)


def kept(newcomer: StateCutoff, *events: Event) -> list[str]:
    return [
        f"{event.sender}:{event.first}-{event.last}" if isinstance(event, Batch) else "view"
        for event in newcomer.filter(events)
    ]


def test_messages_up_to_the_marks_are_left_out() -> None:
    newcomer = StateCutoff(ViewId(4, A), {A: 5, B: 7})
    events = (view(4), run(A, 1, 3), run(A, 4, 8), run(B, 7, 7), run(B, 8, 9), run(C, 1, 1))
    assert kept(newcomer, *events) == ["view", "1:6-8", "2:8-9", "3:1-1"]


def test_messages_of_earlier_views_are_left_out() -> None:
    newcomer = StateCutoff(ViewId(4, A), {A: 5})
    events = (view(3), run(A, 1, 9), run(B, 1, 1), view(4), run(B, 2, 2), view(5), run(A, 10, 10))
    assert kept(newcomer, *events) == ["view", "view", "2:2-2", "view", "1:10-10"]


def test_messages_for_the_newcomer_alone_are_kept() -> None:
    newcomer = StateCutoff(ViewId(4, A), {A: 5})
    assert kept(newcomer, view(3), run(A, 1, 2, dest=B), view(4), run(A, 3, 3, dest=B)) == [
        "view",
        "1:1-2",
        "view",
        "1:3-3",
    ]


def test_it_is_over_where_the_state_was_taken() -> None:
    newcomer = StateCutoff(ViewId(4, A), {A: 5})
    assert kept(newcomer, view(4), run(A, 5, 5), StateTaken(), run(A, 1, 1)) == ["view", "1:1-1"]
    assert newcomer.over
