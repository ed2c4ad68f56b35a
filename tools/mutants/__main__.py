"""Mutation testing: `python -m tools.mutants --sample 600`, or with the modules to break.

Prints each mutant with its verdict, the score of each module, and the survivors.
"""

import argparse
import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

from tools.mutants.operators import Mutant, mutants_of
from tools.mutants.runner import Runner, Verdict, run
from tools.tests_of import find_tests
from tools.tree import Module, read_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/ringcast/"
MODULES = (
    "core/reliable/windows.py",
    *(f"core/wire/{name}.py" for name in ("codec", "fastpath", "packed", "layout", "slices")),
    "layers/multicast/",
    "control/membership/",
)
"""What is broken where no module is named: files, or folders for all files in them."""
PURE_TESTS = (
    *("tests/unit/core", "tests/unit/layers", "tests/unit/control"),
    *("tests/properties", "tests/sim"),
)
"""Where tests need no socket, no process and no Spark."""
DEAD = (Verdict.KILLED, Verdict.HUNG)


def main(arguments: list[str]) -> int:
    """Break a sample of the modules; 1 if fewer mutants than `--least` percent are noticed."""
    options = parse(arguments)
    os.nice(19)
    modules = choose(options.modules or [f"{SOURCE}{name}" for name in MODULES])
    mutants = sample(modules, options.sample, options.seed)
    if options.survivors_of is not None:
        mutants = survivors(mutants, options.survivors_of.read_text())
    if not mutants:
        print(f"nothing to break in {options.modules}: name modules below {SOURCE}")
        return 1
    tests = options.tests or tests_of(modules)
    runner = run(ROOT, tests, mutants, options.budget, lambda line: print(line, flush=True))
    print("\n".join(report(runner)))
    return 0 if score(runner.verdicts) >= options.least else 1


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="files or folders below src/ringcast")
    parser.add_argument("--sample", type=int, default=600, help="mutants in all; 0 takes every one")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument(
        "--budget", type=float, default=10.0, help="CPU seconds of tests per mutant"
    )
    parser.add_argument("--least", type=float, default=85.0, help="percent that must be noticed")
    parser.add_argument("--survivors-of", type=Path, help="what a run of the same sample printed")
    parser.add_argument("--tests", nargs="*", help="test files, instead of those of the modules")
    return parser.parse_args(arguments)


def choose(names: list[str]) -> list[Module]:
    """The modules that are named, by file or by folder."""
    tree = read_tree(ROOT)
    return [m for m in tree.source if any(m.path == n or m.path.startswith(n) for n in names)]


def sample(modules: list[Module], count: int, seed: int) -> list[Mutant]:
    """Up to `count` mutants, the same share of each module, the same ones for the same seed."""
    every = {m.path: mutants_of(m.path, m.text) for m in modules}
    total = sum(map(len, every.values()))
    share = min(1.0, count / total) if count and total else 1.0
    taken: list[Mutant] = []
    for path, mutants in every.items():
        drawn = random.Random(f"{seed} {path}").sample(mutants, round(len(mutants) * share))
        taken += sorted(drawn, key=lambda m: (m.place, m.variant))
    return taken


def survivors(mutants: list[Mutant], printed: str) -> list[Mutant]:
    """Those of the mutants that a run has printed as not noticed, wherever their lines are now."""
    found = re.findall(r"^\d+/\d+ (?:survived|unreached) (\S+?):\d+ (.+)$", printed, re.MULTILINE)
    return [mutant for mutant in mutants if (mutant.path, mutant.where) in found]


def tests_of(modules: list[Module]) -> list[str]:
    """The pure tests that `tools.tests_of` finds for the modules, and all unit tests beside."""
    tree = read_tree(ROOT)
    found = {path for module in modules for path in find_tests(tree, module)}
    areas = tuple(f"tests/unit/{area}/" for area in {module.area for module in modules})
    found |= {m.path for m in tree.modules if m.path.startswith(areas) and "/test_" in m.path}
    return sorted(path for path in found if path.startswith(PURE_TESTS))


def score(verdicts: list[tuple[Mutant, Verdict]]) -> float:
    """The percentage of mutants that a test has noticed, of those that could be tried."""
    counts = Counter(verdict for _, verdict in verdicts)
    tried = counts.total() - counts[Verdict.REFUSED]
    return 100 * sum(counts[v] for v in DEAD) / tried if tried else 0.0


def report(runner: Runner) -> list[str]:
    """The lines that end a run: failing tests, the score of each module, and the survivors."""
    paths = list(dict.fromkeys(mutant.path for mutant, _ in runner.verdicts))
    lines = ["", *(f"failed without a mutant: {name}" for name in runner.reach.failed)]
    for path in paths:
        own = [(m, v) for m, v in runner.verdicts if m.path == path]
        lines.append(_row(path.removeprefix(SOURCE), own))
    lines += [_row("all", runner.verdicts), "", "survivors:"]
    lines += [f"  {v.name.lower()} {m}" for m, v in runner.verdicts if v not in DEAD]
    return lines


def _row(name: str, verdicts: list[tuple[Mutant, Verdict]]) -> str:
    noticed = sum(v in DEAD for _, v in verdicts)
    return f"{name:45} {noticed:4} of {len(verdicts):4} noticed  {score(verdicts):5.1f} %"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
