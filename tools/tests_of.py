"""Finds the tests of a module: `python -m tools.tests_of src/ringcast/core/model/runs.py`.

First the mirror test, tests/unit/core/model/test_runs.py here (or test_runs_*.py beside it),
then the tests that TESTED_BY names, then all that import the module.
"""

import sys
from pathlib import Path

from tools.tree import Module, Tree, read_tree

ROOT = Path(__file__).resolve().parents[1]

TESTED_BY = {
    "ringcast.control.membership": "tests/sim/test_membership.py",
    "ringcast.core.reliable.base": "tests/unit/core/reliable/test_windows.py",
    "ringcast.core.stack": "tests/sim/test_world.py",
    "ringcast.core.wire": "tests/properties/test_codec.py",
    "ringcast.layers.flow.credits": "tests/unit/layers/flow/test_layer.py",
    "ringcast.layers.fragment.assemblies": "tests/unit/layers/fragment/test_bounds.py",
    "ringcast.layers.multicast": "tests/sim/test_multicast.py",
    "ringcast.layers.wire": "tests/sim/test_multicast.py",
}
"""Modules, or packages for all modules in them, that are tested with others: where."""


def find_tests(tree: Tree, module: Module) -> list[str]:
    """The test files of a module, the nearest first."""
    folder, _, stem = module.name.removeprefix("ringcast.").replace(".", "/").rpartition("/")
    mirror = "/".join(filter(None, ("tests/unit", folder, f"test_{stem}")))
    tests = [other for other in tree.modules if other.path.startswith("tests/")]
    found = [other.path for other in tests if other.path == f"{mirror}.py"]
    found += [other.path for other in tests if other.path.startswith(f"{mirror}_")]
    found += [
        path
        for name, path in TESTED_BY.items()
        if module.name == name or module.name.startswith(f"{name}.")
    ]
    found += [
        other.path
        for other in tests
        if other.path.rpartition("/")[2].startswith("test_")
        and any(name == module.name for name, _ in tree.imports(other))
    ]
    return list(dict.fromkeys(found))


def main(arguments: list[str]) -> int:
    """Print the tests of the modules that are named by path or dotted name; 1 if one has none."""
    tree, missing = read_tree(ROOT), 0
    for argument in arguments:
        chosen = [m for m in tree.source if argument in (m.path, m.name)]
        if not chosen:
            print(f"there is no module {argument}: give a path below src/, or a dotted name")
        tests = [path for module in chosen for path in find_tests(tree, module)]
        print("\n".join(tests) or f"no test of {argument} was found")
        missing += not tests
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
