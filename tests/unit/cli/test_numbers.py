"""Numbers on the command line."""

from argparse import ArgumentTypeError

import pytest

from ringcast.cli.numbers import count, number, port, seconds, whole


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


def test_seconds_end_where_clocks_do() -> None:
    with pytest.raises(ArgumentTypeError, match="at most 1,000,000,000 seconds"):
        seconds("1e20")


def test_whole_numbers() -> None:
    assert whole("-12") == -12
    for text in ("", "x", "0.5", "1e3", "nan"):
        with pytest.raises(ArgumentTypeError, match="is not a whole number"):
            whole(text)
    with pytest.raises(ArgumentTypeError, match="is too large"):
        whole("99999999999999999999")


def test_a_port_is_one_that_a_socket_takes() -> None:
    assert [port(text) for text in ("0", "7890", "65535")] == [0, 7890, 65_535]


@pytest.mark.parametrize("text", ["-1", "65536", "99999999999"])
def test_other_ports_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="give a port from 0 to 65535"):
        port(text)


def test_a_count_begins_at_one() -> None:
    assert count("1") == 1
    with pytest.raises(ArgumentTypeError, match="give 1 or more"):
        count("0")
