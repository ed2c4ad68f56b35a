"""Texts from elsewhere steer no terminal, forge no line and stay short."""

import pytest

from ringcast.core.model.text import printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü\tand tab", "plain ü\tand tab"),
        ("\x1b]0;x\x07\r\n\u202e", r"\x1b]0;x\x07\r\n\u202e"),
        ("\ud800\0", r"\ud800\x00"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shortened(text, 100) == shown


def test_a_long_text_is_cut() -> None:
    assert shortened("x" * 11, 10) == "x" * 10 + "…"
    assert shortened("x" * 10, 10) == "x" * 10
