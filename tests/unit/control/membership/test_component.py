"""A component finds the view of its part."""

import pytest

from ringcast.control.membership.component import Component
from tests.unit.control.membership.bench import OLD, following, searching


def test_the_view_is_that_of_the_part() -> None:
    assert Component(following().part).view == OLD


def test_a_joiner_has_no_view() -> None:
    with pytest.raises(AssertionError):
        assert Component(searching().part).view
