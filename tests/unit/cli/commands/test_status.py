"""`ringcast status` without members: it says so, and still explains its words."""

from pathlib import Path

import pytest

from ringcast.cli.main import main


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run directory without members."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.mark.usefixtures("empty")
def test_without_a_member_one_sentence_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "prices"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no member of prices that can be asked runs here: start one" in captured.err


@pytest.mark.usefixtures("empty")
def test_columns_and_all_reasons_for_drops_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["status", "--explain"])
    out = capsys.readouterr().out
    assert "  missing: messages that were lost on their way and are asked for\n" in out
    assert "  malformed (datagrams): " in out
