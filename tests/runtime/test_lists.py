"""Lists belong to those who have them: what is done to one changes no message, even if it was lost
and has to be sent again."""

from collections.abc import Iterator
from contextlib import contextmanager

from ringcast import sync
from ringcast.layers.faults import Faults
from tests.runtime.support import SOON, await_view, group_name, memory, numbered, take_bytes

RUNS, COUNT = 30, 20


@contextmanager
def lossy_pair() -> Iterator[tuple[sync.Group, sync.Group]]:
    """Two members, of whom one loses half of what comes."""
    name, losing = group_name(), memory().insert(Faults(loss=0.5))
    with sync.join(name, memory(), timeout=SOON) as one, sync.join(name, losing) as other:
        await_view(one, 2)
        yield one, other


def test_a_list_can_be_used_again_once_it_was_sent() -> None:
    messages: list[bytes] = []
    with lossy_pair() as (one, other):
        for number in range(RUNS):
            messages += numbered(f"{number}", COUNT)
            one.send_many(messages)
            messages.clear()
        expected = [m for number in range(RUNS) for m in numbered(f"{number}", COUNT)]
        assert take_bytes(one, RUNS * COUNT) == expected
        assert take_bytes(other, RUNS * COUNT) == expected


def test_what_an_application_does_to_a_batch_does_not_reach_the_others() -> None:
    with lossy_pair() as (one, other):
        for number in range(RUNS):
            one.send_many(numbered(f"{number}", COUNT))
        left = RUNS * COUNT
        for batch in one.batches(timeout=SOON):
            assert isinstance(batch.payloads, list)
            left -= len(batch)
            batch.payloads.clear()
            if not left:
                break
        expected = [m for number in range(RUNS) for m in numbered(f"{number}", COUNT)]
        assert take_bytes(other, RUNS * COUNT) == expected
