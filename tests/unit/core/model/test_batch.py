"""Batches: payloads are bytes for an application, views only inside a stack."""

from ringcast.core.model.address import Address
from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE, Batch, Message

ANN = Address(1)
LARGE = b"x" * VIEW_PAYLOAD_SIZE


def test_memoryviews_of_a_batch_become_bytes() -> None:
    batch = Batch(ANN, [memoryview(LARGE)], len(LARGE), first=1, size=len(LARGE))
    batch.drop_views()
    assert [type(payload) for payload in batch.payloads] == [bytes]
    assert list(batch.payloads) == [LARGE]


def test_bytes_are_not_copied() -> None:
    batch = Batch(ANN, [LARGE, memoryview(LARGE), b"small"], 2 * len(LARGE) + 5, first=1)
    batch.drop_views()
    assert batch.payloads[0] is LARGE
    assert [type(payload) for payload in batch.payloads] == [bytes] * 3


def test_runs_of_small_messages_are_not_touched() -> None:
    small = [b"12345678"] * 1_000
    batch = Batch(ANN, small, 8_000, first=1, size=8)
    batch.drop_views()
    assert batch.payloads is small


def test_other_payloads_in_the_same_run() -> None:
    batch = Batch(Address(1), [b"a", b"b", b"c"], 3, dest=Address(2), first=5, flags=4, sent_at=9)
    batch.size = 1
    changed = batch.with_payloads([b"aa", b"bbb", b""])
    assert (changed.first, changed.last, changed.nbytes, changed.size) == (5, 7, 5, 0)
    assert (changed.sender, changed.dest, changed.flags, changed.sent_at) == (
        *(Address(1), Address(2), 4, 9),
    )
    tail = batch.with_payloads([b"c!"], first=7)
    assert list(tail) == [Message(Address(1), 7, b"c!")]
