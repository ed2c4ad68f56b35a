"""What a segment covers: whole within a view, broken by skips and by views."""

import pytest

from ringcast.journal.format.coverage import Coverage, CoveredRange, Reached


def test_runs_of_one_view_are_one_piece_however_sparse() -> None:
    coverage = Coverage()
    coverage.add(3, 1, 7, 5, 2)
    coverage.add(3, 1, 7, 20, 1)  # 7 to 19 were the fragments of 20.
    (digest,) = coverage.views()
    assert (digest.view, digest.view_by) == (3, 1)
    assert digest.senders == {7: (CoveredRange(5, 20, 3),)}
    assert coverage.holes() == {}


def test_a_segment_continues_its_recorders_former_one() -> None:
    coverage = Coverage(Reached(3, 1, {7: 20}))
    coverage.add(3, 1, 7, 30, 1)
    assert coverage.views()[0].senders == {7: (CoveredRange(21, 30, 1),)}
    assert coverage.carry() == Reached(3, 1, {7: 30})


@pytest.mark.parametrize("view", [(4, 1), (3, 2)], ids=["number", "coordinator"])
def test_another_view_begins_anew(view: tuple[int, int]) -> None:
    coverage = Coverage(Reached(3, 1, {7: 20}))
    coverage.add(*view, 7, 30, 1)
    assert coverage.views()[0].senders == {7: (CoveredRange(30, 30, 1),)}
    assert coverage.carry() == Reached(*view, {7: 30})


def test_what_was_missed_between_two_views_is_a_hole() -> None:
    coverage = Coverage()
    coverage.add(3, 1, 7, 1, 50)
    coverage.add(4, 1, 7, 81, 10)
    assert coverage.holes() == {7: ((51, 80),)}


def test_a_skip_is_a_hole_and_not_covered() -> None:
    coverage = Coverage()
    coverage.add(3, 1, 7, 1, 5)
    coverage.skip(3, 1, 7, 6, 8)
    coverage.add(3, 1, 7, 9, 1)
    assert coverage.views()[0].senders == {7: (CoveredRange(1, 5, 5), CoveredRange(9, 9, 1))}
    assert coverage.holes() == {7: ((6, 8),)}


def test_a_skip_at_the_end_is_a_hole_and_is_not_carried() -> None:
    coverage = Coverage()
    coverage.add(3, 1, 7, 1, 5)
    coverage.skip(3, 1, 7, 6, 8)
    assert coverage.holes() == {7: ((6, 8),)}
    assert coverage.carry() == Reached(3, 1, {})


def test_a_run_that_does_not_follow_is_refused() -> None:
    coverage = Coverage()
    coverage.add(3, 1, 7, 1, 5)
    with pytest.raises(AssertionError):
        coverage.add(3, 1, 7, 5, 1)
