"""Batches and their storage: runs go in and come out as they are, cut to what is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT, Batch, Message
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.runs import CHUNK_RUNS, RunStore

A = Address(1)


def run(first: int, count: int) -> Batch:
    payloads = [b"%d" % seqno for seqno in range(first, first + count)]
    return Batch(A, payloads, sum(map(len, payloads)), first=first, flags=FRAGMENT, sent_at=9)


def seqnos(runs: list[Batch]) -> list[int]:
    return [int(bytes(message.payload)) for found in runs for message in found]


def test_a_batch_iterates_as_messages() -> None:
    assert list(run(7, 2)) == [Message(A, 7, b"7"), Message(A, 8, b"8")]
    assert run(7, 2).last == 8
    assert len(run(7, 2)) == 2


def test_a_part_keeps_what_the_wire_said() -> None:
    part = run(8, 5).part(9, 10)
    assert (part.first, list(part.payloads), part.nbytes) == (9, [b"9", b"10"], 3)
    assert (part.sender, part.flags, part.sent_at) == (A, FRAGMENT, 9)
    whole = run(8, 5)
    assert whole.part(8, 12) is whole


def test_runs_come_back_cut_to_the_ranges() -> None:
    store = RunStore()
    for first, count in ((11, 5), (1, 3), (6, 2)):
        store.add(run(first, count))
    assert seqnos(store.get(1, 99)) == [1, 2, 3, 6, 7, 11, 12, 13, 14, 15]
    assert seqnos(store.get_all(RangeSet([(2, 6), (14, 20)]))) == [2, 3, 6, 14, 15]


def test_a_purge_frees_what_it_names_and_its_bytes() -> None:
    store = RunStore()
    store.add(run(1, 3))
    store.add(run(4, 3))
    store.purge(5)
    assert seqnos(store.get(1, 9)) == [6]
    assert store.nbytes == 1
    store.purge(6)
    assert len(store) == 0
    assert store.nbytes == 0


@given(st.sets(st.integers(1, 60)), st.integers(0, 60), st.integers(1, 30), st.integers(0, 30))
def test_a_run_store_holds_what_a_set_would(
    kept: set[int], purged: int, first: int, more: int
) -> None:
    store = RunStore()
    for low, high in RangeSet((seqno, seqno) for seqno in sorted(kept)):
        store.add(run(low, high - low + 1))
    store.purge(purged)
    last = first + more
    wanted = {seqno for seqno in kept if first <= seqno <= last}
    found = set(seqnos(store.get(first, last)))
    assert {seqno for seqno in wanted if seqno > purged} <= found <= wanted


# --- chunks --------------------------------------------------------------------------------------


def test_a_run_in_the_middle_moves_a_bounded_number_of_entries() -> None:
    store = RunStore()
    count = 65_536
    for seqno in range(1, 2 * count, 2):
        store.add(run(seqno, 1))
    assert store.moved == 0
    inserts = range(2, 2 * count, 512)
    most = 0
    for seqno in inserts:
        before = store.moved
        store.add(run(seqno, 1))
        most = max(most, store.moved - before)
    assert most <= 4 * CHUNK_RUNS
    assert len(store) == count + len(inserts)
    assert seqnos(store.get(1, 6)) == [1, 2, 3, 5]


@given(st.permutations(range(1, 41)), st.lists(st.integers(0, 45), max_size=4))
def test_chunks_of_any_size_hold_the_same(order: list[int], purges: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ringcast.core.model.runs.CHUNK_RUNS", 2)
        store, kept = RunStore(), set[int]()
        for n, seqno in enumerate(order):
            store.add(run(3 * seqno, 2))
            kept |= {3 * seqno, 3 * seqno + 1}
            if n % 10 == 9 and purges:
                up_to = 3 * purges.pop()
                store.purge(up_to)
                kept = {seqno for seqno in kept if seqno > up_to}
                order = [seqno for seqno in order if 3 * seqno > up_to]
            assert seqnos(store.get(0, 200)) == sorted(kept)
            assert seqnos(store.get(31, 76)) == [s for s in sorted(kept) if 31 <= s <= 76]
        assert store.nbytes == sum(len(str(seqno)) for seqno in kept)
