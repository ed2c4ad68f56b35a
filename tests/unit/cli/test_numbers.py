"""Numbers on the command line."""

from argparse import ArgumentTypeError

import pytest

from ringcast.cli.numbers import number, seconds


def test_texts_are_read_as_numbers_and_seconds() -> None:
    assert number("-1.5e3") == -1500.0
    assert seconds("0.5") == 0.5


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x", ""])
def test_what_cannot_be_counted_with(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a number"):
        number(text)


@pytest.mark.parametrize("text", ["0", "-1"])
def test_nobody_waits_for_less_than_nothing(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="above 0"):
        seconds(text)
