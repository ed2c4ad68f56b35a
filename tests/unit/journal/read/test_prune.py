"""Pruning: what conditions rule out is not read, and what they allow always is."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ringcast.journal.format.coverage import CoveredRange
from ringcast.journal.read.plan import Slice
from ringcast.journal.read.prune import Conditions, prune
from tests.unit.journal.read.test_admission import whole


def slices() -> list[Slice]:
    """Two segments: of senders 1 and 2, and of sender 3."""
    one = whole("a", {1: (CoveredRange(1, 10, 10),), 2: (CoveredRange(5, 50, 46),)})
    return [one, whole("b", {3: (CoveredRange(1, 5, 5),)})]


def left(conditions: Conditions) -> dict[str, dict[int, object]]:
    return {part.segment.name: dict(part.senders) for part in prune(slices(), conditions)}


def test_no_condition_leaves_everything() -> None:
    assert prune(slices(), Conditions()) == slices()
    assert all(part.whole for part in prune(slices(), Conditions()))


def test_a_sender_picks_its_segments() -> None:
    assert left(Conditions().among("sender", [3])) == {"b": {3: ((1, 5),)}}
    assert left(Conditions().among("sender", [1, 3])) == {"a": {1: ((1, 10),)}, "b": {3: ((1, 5),)}}
    assert left(Conditions().among("sender", [1]).among("sender", [3])) == {}
    assert left(Conditions().among("sender", [])) == {}


def test_seqnos_cut_what_is_taken() -> None:
    late = Conditions().within("seqno", (8, 1_000))
    assert left(late) == {"a": {1: ((8, 10),), 2: ((8, 50),)}}
    assert left(late.within("seqno", (0, 7))) == {}


def test_another_group_leaves_nothing() -> None:
    assert left(Conditions().among("group", ["other"])) == {}
    assert len(left(Conditions().among("group", ["g", "other"]))) == 2


def test_times_views_and_recorders_are_ruled_out_by_manifests() -> None:
    old, new = slices()
    timed = replace(new.segment, sent_at=(100, 200), delivered_at=(110, 210))
    some = [old, Slice(timed, new.senders)]
    for column, inside, outside in [
        ("sent_at", (150, 160), (201, 999)),
        ("delivered_at", (0, 110), (0, 109)),
    ]:
        assert len(prune(some, Conditions().within(column, inside))) == 2
        # The first format has no bounds of times, so nothing rules it out.
        assert prune(some, Conditions().within(column, outside)) == [old]
    assert len(prune(some, Conditions().within("view", (1, 1)))) == 2
    assert prune(some, Conditions().within("view", (2, 9))) == []
    assert prune(some, Conditions().among("recorder", [2])) == []


@given(st.integers(0, 4), st.integers(0, 60), st.integers(0, 60))
def test_what_conditions_allow_is_left(sender: int, least: int, most: int) -> None:
    conditions = Conditions().among("sender", [sender]).within("seqno", (least, most))
    expected = {
        (part.segment.name, s, seqno)
        for part in slices()
        for s, spans in part.senders.items()
        for first, last in spans
        for seqno in range(first, last + 1)
        if s == sender and least <= seqno <= most
    }
    found = {
        (part.segment.name, s, seqno)
        for part in prune(slices(), conditions)
        for s, spans in part.senders.items()
        for first, last in spans
        for seqno in range(first, last + 1)
    }
    assert found == expected
