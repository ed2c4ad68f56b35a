"""Bounds on waiting by size: steps that rise, and nothing else."""

import pytest

from ringcast.core.model.block_times import BlockTimes
from ringcast.errors import ConfigError


def test_a_message_waits_as_long_as_the_step_it_fits() -> None:
    times = BlockTimes("1000:10,10000:100")
    sizes = (0, 1, 1_000, 1_001, 10_000)
    assert [times.limit(size) for size in sizes] == [0.01, 0.01, 0.01, 0.1, 0.1]


def test_a_message_above_all_steps_has_no_bound() -> None:
    assert BlockTimes("1000:10").limit(1_001) is None


def test_an_empty_text_bounds_nothing() -> None:
    assert not BlockTimes("")
    assert BlockTimes(" ").limit(0) is None


def test_blanks_and_fractions_are_read() -> None:
    times = BlockTimes(" 50 : 0.5 , 500 : 3 ")
    assert times.limit(50) == 0.0005
    assert times.limit(51) == 0.003


@pytest.mark.parametrize(
    "text",
    [
        *("1000", "1000:", ":10", "1000:10,", "a:10", "1000:b", "0:10", "-5:10", "10:0", "10:-1"),
        *("10:inf", "10:nan", "1000:10,1000:20", "1000:10,500:20", "1000:10,2000:10", "9:9,10:8"),
    ],
)
def test_anything_but_rising_steps_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ConfigError, match="max_block_times") as caught:
        BlockTimes(text, "Flow.max_block_times")
    assert f'"{text}"' in str(caught.value)
