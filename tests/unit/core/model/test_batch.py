"""Batches: payloads are bytes for an application, views only inside a stack."""

from ringcast.core.model.address import Address
from ringcast.core.model.batch import VIEW_PAYLOAD_SIZE, Batch

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
