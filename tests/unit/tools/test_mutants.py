"""The tool that breaks the code finds what may be broken, and tells noticed from unnoticed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.__main__ import choose, sample, score, survivors
from tools.mutants.operators import Mutant, code_of, mutants_of
from tools.mutants.runner import Verdict

ROOT = Path(__file__).resolve().parents[3]
ACK_MAP = "src/ringcast/core/reliable/ack_map.py"


def changes(body: str) -> list[str]:
    """The changes to a function of this body."""
    text = "def f(a, b=1):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return [mutant.change for mutant in mutants_of("m.py", text)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b = a < 3", ["a < 3 → a <= 3", "3 → 4"]),
        ("b = a + b", ["a + b → a - b"]),
        ("b = a and b", ["a and b → a or b"]),
        ("b = not a", ["not a → a"]),
        ("b = min(a, b)", ["min(a, b) → max(a, b)"]),
        ("b = True", ["True → False"]),
        ("a += b", ["a += b → a -= b", "a += b → pass"]),
        ("a.b = b", ["a.b = b → pass"]),
        ("a(b)", ["a(b) → pass"]),
        ("return a", ["return a → return"]),
        ("raise E(1 + 2)", ["raise E(1 + 2) → pass"]),
        ("if a:\n    pass", ["a → not a"]),
    ],
)
def test_a_statement_is_broken_in_these_ways(body: str, expected: list[str]) -> None:
    assert changes(body) == expected


@pytest.mark.parametrize(
    "body", ['"""Is 1 < 2."""', "assert a < 1", "a = f'{b + 1}'", "a: 1 + 2", "return None"]
)
def test_texts_assertions_and_annotations_are_left_alone(body: str) -> None:
    assert changes(body) == []


def test_code_outside_of_functions_is_left_alone() -> None:
    assert mutants_of("m.py", "A = 1 + 2\n\nclass C:\n    b: int = 3\n") == []


def test_a_mutant_is_compiled_with_its_one_change() -> None:
    text = "def f(a):\n    return a + 1\n"
    [mutant] = [m for m in mutants_of("m.py", text) if m.change == "a + 1 → a - 1"]
    changed = code_of(mutant, text, "m.py")[("f", 1)]
    plain = compile(ast.parse(text), "m.py", "exec").co_consts[0]
    assert changed.co_code != plain.co_code
    assert changed.co_names == plain.co_names


def test_a_sample_repeats_with_its_seed() -> None:
    modules = choose([ACK_MAP])
    assert len(sample(modules, 5, seed=1)) == 5
    assert sample(modules, 5, seed=1) == sample(modules, 5, seed=1)
    assert sample(modules, 5, seed=1) != sample(modules, 5, seed=2)


def test_the_survivors_of_a_run_can_be_tried_again() -> None:
    three = sample(choose([ACK_MAP]), 3, seed=1)
    printed = f"1/3 survived {three[0]}\n2/3 killed {three[1]}\n3/3 unreached {three[2]}\n"
    assert survivors(three, printed) == [three[0], three[2]]


def test_a_hung_mutant_is_noticed_and_one_that_cannot_be_tried_does_not_count() -> None:
    mutant = Mutant("m.py", 0, 0, 1, 1, "f", "1 → 2")
    verdicts = [Verdict.KILLED, Verdict.HUNG, Verdict.SURVIVED, Verdict.UNREACHED, Verdict.REFUSED]
    assert score([(mutant, verdict) for verdict in verdicts]) == 50.0


TESTED = """
def double(a):
    while a > 100:
        a -= 1
    return a + a
"""


@pytest.mark.parametrize(
    ("check", "change", "verdict"),
    [
        ("double(3) == 6", "a + a → a - a", "killed"),
        ("double(0) == 0", "a + a → a - a", "survived"),
        ("double(101) == 200", "a -= 1 → pass", "hung"),
        ("True", "a + a → a - a", "unreached"),
    ],
)
def test_a_mutant_gets_its_verdict(tmp_path: Path, check: str, change: str, verdict: str) -> None:
    (tmp_path / "doubled.py").write_text(TESTED)
    (tmp_path / "test_doubled.py").write_text(
        f"from doubled import double\n\n\ndef test_double():\n    assert {check}\n"
    )
    program = (
        "import sys; from pathlib import Path; from tools.mutants import operators, runner;"
        "runner.SECONDS_MIN = 0.2; root = Path(sys.argv[1]); path = 'doubled.py';"
        "mutants = operators.mutants_of(path, (root / path).read_text());"
        "chosen = [m for m in mutants if m.change == sys.argv[2]];"
        "runner.run(root, [str(root)], chosen, 10, print)"
    )
    command = [sys.executable, "-c", program, str(tmp_path), change]
    path = f"{ROOT}:{tmp_path}"
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": path}, cwd=tmp_path, check=True
    )
    assert f"1/1 {verdict} doubled.py:" in done.stdout, done.stdout + done.stderr
