"""The settings of the membership are checked when they are given."""

import pytest

from ringcast.control.membership.settings import Membership
from ringcast.errors import ConfigError


@pytest.mark.parametrize("name", list(Membership().values()))
def test_times_are_above_zero(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Membership.{name} is 0: give seconds above 0"):
        Membership(**{name: 0})


def test_the_first_repeat_is_no_later_than_the_longest_pause() -> None:
    with pytest.raises(ConfigError, match="retry is above retry_max"):
        Membership(retry=1.0, retry_max=0.5)
