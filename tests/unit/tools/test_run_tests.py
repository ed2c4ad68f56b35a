"""The closing line of two runs of pytest counts both."""

from collections import Counter

import pytest

from tools import run_tests
from tools.run_tests import closing_line, counts, main


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("3 passed in 0.52s\n", {"passed": 3}),
        (
            "== 1 failed, 2 passed, 1 warning in 61.52s (0:01:01) ==\n",
            {"failed": 1, "passed": 2, "warnings": 1},
        ),
        (
            "=== 2 passed, 3 deselected, 1 error in 0.5s ===\n",
            {"passed": 2, "deselected": 3, "errors": 1},
        ),
        ("5 passed the gate\n", {}),
        ("no tests ran in 0.01s\n", {}),
    ],
)
def test_counts_are_read_from_a_closing_line(line: str, expected: dict[str, int]) -> None:
    assert counts(line) == expected


def test_a_closing_line_can_be_read_again() -> None:
    total = Counter(failed=1, passed=20, errors=2)
    assert counts(closing_line(total, 61.5)) == total


@pytest.mark.parametrize(
    ("runs", "status", "line"),
    [
        ([(0, Counter(passed=2)), (0, Counter(passed=3))], 0, " 5 passed in "),
        ([(1, Counter(passed=2, failed=1)), (0, Counter(passed=3))], 1, " 1 failed, 5 passed in "),
        ([(0, Counter(passed=2)), (1, Counter(errors=1))], 1, " 2 passed, 1 errors in "),
        ([(0, Counter(passed=2)), (5, Counter(deselected=4))], 0, " 2 passed, 4 deselected in "),
        ([(0, Counter(passed=2)), (-9, Counter())], -9, " 2 passed, 1 errors in "),
    ],
)
def test_the_verdict_counts_both_runs(
    runs: list[tuple[int, Counter[str]]],
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = iter(runs)
    monkeypatch.setattr(run_tests, "run", lambda arguments: next(results))
    assert main([]) == status
    assert line in capsys.readouterr().out.splitlines()[-1]
