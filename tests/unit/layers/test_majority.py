"""Which members are a majority, and what a sender is told that lacks one."""

import pytest

from ringcast import ConfigError, Timeout, presets, sync
from ringcast.layers.majority import Majority, has_majority
from ringcast.transports import Memory


@pytest.mark.parametrize(
    ("present", "left", "expected"),
    [
        ((1, 2, 3), (), True),
        ((2, 3, 9), (), False),
        ((3, 4), (), False),
        ((1, 2), (), True),
        ((2,), (1, 3), True),
        ((4,), (1, 3), False),
        ((2,), (1, 3, 4), True),
        ((9,), (1, 2, 3, 4), True),
    ],
)
def test_a_majority_is_more_than_half_or_half_with_the_senior(
    present: tuple[int, ...], left: tuple[int, ...], expected: bool
) -> None:
    """Of 1, 2, 3 and 4, of whom 1 is the most senior."""
    assert has_majority(present, (1, 2, 3, 4), left) is expected


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="first"):
        Majority(first=0)
    with pytest.raises(ConfigError, match="interval"):
        Majority(interval=0.0)


def test_a_send_without_a_majority_says_what_is_missing() -> None:
    spec = presets.loopback().replace(Memory()).insert(Majority(first=2))
    with sync.join("majority of two", spec, receive=False) as group:
        with pytest.raises(Timeout, match="no majority has agreed on the view yet"):
            group.send(b"x", timeout=0.1)
        with sync.join("majority of two", spec) as other:
            group.send(b"y", timeout=20.0)
            assert other.receive(timeout=20.0).payload == b"y"
