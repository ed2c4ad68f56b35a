"""`ringcast sim` with a burst of large messages: who got it, who is reported, what it cost."""

import json

import pytest

from ringcast.cli.main import main

BURST = [
    *("sim", "--preset", "bulk", "--size", "300000", "--messages", "6", "--members", "8"),
    *("--loss", "0.01", "--seed", "4"),
]


def test_a_burst_with_one_that_stands_still(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BURST, "--still", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["delivered"] == printed["expected"] == 6 * 7
    assert printed["lacking"] == printed["reported"] == {"m8": 6}
    assert printed["outstanding"] == printed["violations"] == []
    asked = printed["frames"]["UNACKED"] + printed["frames"]["LAST"]
    assert 6 * 6 <= printed["acks"] <= 6 * 7 + asked
    assert 300_000 < printed["sender_bytes_max"] <= printed["sender_bytes_bound"]
    assert 300_000 <= printed["receiver_bytes_max"] <= printed["receiver_bytes_bound"]


def test_the_same_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BURST, "--still", "1"]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    rows = {name: value.strip() for name, value in lines.items()}
    assert rows["delivered"] == "42 of 42"
    assert rows["not delivered"] == "m8 lacks 6"
    assert rows["reported"] == "m8 for 6 messages"
    assert rows["buffers"] == "empty at all senders"
    assert rows["acks"].endswith("for 6 messages to 7 others")
    assert rows["memory"].startswith("a sender 1,8")
    assert "left behind" not in rows  # The window has room for all of it, so nobody had to wait.


def test_a_member_that_fills_the_window_is_left_behind(capsys: pytest.CaptureFixture[str]) -> None:
    big = [*BURST[:4], "20000000", *BURST[5:]]
    assert main([*big, "--members", "4", "--still", "1"]) == 0
    printed = capsys.readouterr().out
    assert "left behind:    m4 after 2 s" in printed
    assert "reported:       m4 for 6 messages" in printed


def test_applications_that_are_busy_for_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BURST, "--busy", "m2,m3@0", "--idle", "m2,m3@1.5", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["delivered"] == 6 * 8
    assert printed["lacking"] == printed["reported"] == {}


@pytest.mark.parametrize("still", ["-1", "8"])
def test_one_member_has_to_be_left(still: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BURST, "--still", still]) == 2
    assert f"still is {still}: give 0 to 7" in capsys.readouterr().err
