"""Reads the tree and keeps it tidy: sizes, import direction, banned names, dead modules.

Each rule is a generator over a `Tree` that yields one line a finding: `file:line: what to do`. One
test a rule runs it over this repository; the last two feed the rules spoilt and sound trees, so
that a rule which has gone blind, or sees ghosts, is noticed.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.tree import Module, Tree, area, calls, is_ours, is_within, read_tree

ROOT = Path(__file__).resolve().parents[1]

LINES_MAX = 400
FUNCTION_LINES_MAX = 60

RANKS = {
    "errors": 0,
    "core": 1,
    **dict.fromkeys(("layers", "parts", "services"), 2),
    **dict.fromkeys(("presets", "spec", "transports", "explaining"), 3),
    **dict.fromkeys(("journal", "trace", "sim", "runtime", "sync", "feed", "gateway"), 4),
    "": 5,  # ringcast/__init__.py: the public names
    "spark": 6,
    **dict.fromkeys(("demo", "bench", "soak"), 7),
    **dict.fromkeys(("cli", "__main__"), 8),
}
"""Imports point to the same rank or a lower one. A new top-level name needs a place here."""

PURE = ("core", "layers", "parts", "services")
IMPURE = {
    *("time", "datetime", "random", "secrets", "socket", "selectors", "asyncio", "threading"),
    *("multiprocessing", "concurrent", "subprocess", "signal", "os", "logging"),
}
PURE_EXCEPTIONS = {"ringcast.core.lockfree": {"threading"}}
"""The lock-free ring is about threads, and is pure in every other way."""

UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec"}

SLEEPS_ALLOWED: dict[str, str] = {}
"""Test file → why it must sleep, although a sleep proves nothing on a slow machine."""

PRINTERS = ("ringcast.cli", "ringcast.sim.show")
"""Modules whose work is to print, beside each __main__; others return what they have to say."""


# --- the rules -----------------------------------------------------------------------------------


def files_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        count = len(module.text.splitlines())
        if count > LINES_MAX:
            yield f"{module.at(count)}: {count} lines, at most {LINES_MAX}: split it by concern"


def functions_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > FUNCTION_LINES_MAX:
                    yield f"{module.at(node)}: {node.name}() has {count} lines, split it"


def modules_without_docstring(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        if not ast.get_docstring(module.syntax):
            yield f"{module.at(1)}: begin with a docstring that says why the module is there"


def imports_upwards(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        if module.area not in RANKS:
            yield f"{module.at(1)}: '{module.area}' has no place in RANKS of tests/test_tidy.py"
            continue
        for name, line in tree.imports(module):
            if is_ours(name) and RANKS.get(area(name), -1) > RANKS[module.area]:
                yield f"{module.at(line)}: imports point down, and {name} is above"


def imports_sideways(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        for name, line in tree.imports(module):
            if module.area == "runtime" and is_within(name, "ringcast.sim"):
                yield f"{module.at(line)}: runtime never imports sim"
            elif module.area in ("layers", "parts") and not _may_share(module, name):
                yield f"{module.at(line)}: {name} is a neighbour: hand in a port"


def _may_share(module: Module, name: str) -> bool:
    """Tell whether a layer or part may import `name`, as far as its neighbours are concerned."""
    if area(name) not in ("layers", "parts") or not is_ours(name):
        return True
    if module.is_package and is_within(name, module.name):
        return True  # a package may gather its own modules
    package = ".".join(name.split(".")[:3])
    if package in ("ringcast.layers", "ringcast.parts") or not is_within(module.name, package):
        return False
    # Inside one package everything may be shared but the protocols themselves.
    return module.area == "parts" or not name.startswith(f"{package}.nakack")


def impure_imports(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        if module.area in PURE:
            banned = IMPURE - PURE_EXCEPTIONS.get(module.name, set())
            for name, line in tree.imports(module):
                if name.split(".")[0] in banned:
                    yield f"{module.at(line)}: pure code is handed {name}, never imports it"


def pyspark_outside_spark(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        for name, line in tree.imports(module):
            if is_within(name, "pyspark") and module.area != "spark":
                yield f"{module.at(line)}: only ringcast.spark imports pyspark"


def unsafe_code(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for name, line in tree.imports(module):
            if name.split(".")[0] in UNSAFE_MODULES:
                yield f"{module.at(line)}: {name} executes what it reads: use the codec or JSON"
        for call, called in calls(module):
            if called.removeprefix("builtins.") in UNSAFE_CALLS:
                yield f"{module.at(call)}: {called}() is not used here: parse the text instead"


def addresses_in_pins(tree: Tree) -> Iterator[str]:
    address = re.compile(r"[a-z]+://|--(extra-)?index-url|--find-links|git\+")
    for path in tree.paths:
        if path == "Makefile" or path.startswith(("requirements/", ".ci/")):
            for number, line in enumerate((tree.root / path).read_text().splitlines(), start=1):
                if address.search(line):
                    yield f"{path}:{number}: no addresses: pip's settings say where from"


def dead_modules(tree: Tree) -> Iterator[str]:
    used = set(_entry_points(tree))
    for module in tree.modules:
        used.update(name for name, _ in tree.imports(module) if name != module.name)
        used.update(_names_in_strings(module) - {module.name})
    for module in tree.source:
        if not (module.is_package or module.is_script or module.name in used):
            yield f"{module.at(1)}: nothing imports {module.name}: use it, test it or delete it"


def _entry_points(tree: Tree) -> Iterator[str]:
    if "pyproject.toml" in tree.paths:
        project = tomllib.loads((tree.root / "pyproject.toml").read_text())["project"]
        yield from (target.split(":")[0] for target in project.get("scripts", {}).values())


def _names_in_strings(module: Module) -> set[str]:
    """Collect strings that may name a module: commands are loaded by name, when they are run."""
    strings = (n.value for n in ast.walk(module.syntax) if isinstance(n, ast.Constant))
    return {s.split(":")[0] for s in strings if isinstance(s, str) and s.startswith("ringcast.")}


def sleeps_in_tests(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path.startswith("tests/") and module.path not in SLEEPS_ALLOWED:
            for call, called in calls(module):
                if called.split(".")[-1] == "sleep" and not _is_zero(call):
                    yield f"{module.at(call)}: a sleep proves nothing: wait for the event itself"


def _is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def prints_in_source(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        if not (module.is_script or any(is_within(module.name, name) for name in PRINTERS)):
            for call, called in calls(module):
                if called == "print":
                    yield f"{module.at(call)}: only the command line prints: return the text"


# --- this repository -----------------------------------------------------------------------------

Rule = Callable[[Tree], Iterator[str]]


@pytest.fixture(scope="module")
def tree() -> Tree:
    return read_tree(ROOT)


def expect_none(findings: Iterator[str]) -> None:
    listed = list(findings)
    assert not listed, "\n" + "\n".join(listed)


def test_the_tree_was_read(tree: Tree) -> None:
    assert "tests/test_tidy.py" in tree.paths
    assert "ringcast" in tree.names


def test_files_are_short(tree: Tree) -> None:
    expect_none(files_too_long(tree))


def test_functions_are_short(tree: Tree) -> None:
    expect_none(functions_too_long(tree))


def test_modules_say_why_they_are_there(tree: Tree) -> None:
    expect_none(modules_without_docstring(tree))


def test_imports_point_down(tree: Tree) -> None:
    expect_none(imports_upwards(tree))


def test_neighbours_do_not_import_each_other(tree: Tree) -> None:
    expect_none(imports_sideways(tree))


def test_pure_code_is_pure(tree: Tree) -> None:
    expect_none(impure_imports(tree))


def test_pyspark_stays_in_its_folder(tree: Tree) -> None:
    expect_none(pyspark_outside_spark(tree))


def test_importing_ringcast_loads_no_other_package() -> None:
    """The core has no dependencies, whatever happens to be installed beside it."""
    script = (
        "import sys; before = set(sys.modules); import ringcast;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(new - set(sys.stdlib_module_names) - {'ringcast'}))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT / "src", capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_nothing_executes_what_it_reads(tree: Tree) -> None:
    expect_none(unsafe_code(tree))


def test_pins_hold_no_addresses(tree: Tree) -> None:
    expect_none(addresses_in_pins(tree))


def test_no_module_is_dead(tree: Tree) -> None:
    expect_none(dead_modules(tree))


def test_tests_do_not_sleep(tree: Tree) -> None:
    expect_none(sleeps_in_tests(tree))
    unknown = set(SLEEPS_ALLOWED) - set(tree.paths)
    assert not unknown, f"SLEEPS_ALLOWED names files that are gone: {unknown}"


def test_only_the_command_line_prints(tree: Tree) -> None:
    expect_none(prints_in_source(tree))


# --- the rules themselves ------------------------------------------------------------------------

SPOILT: list[tuple[Rule, str, str]] = [
    (files_too_long, "src/ringcast/a.py", "\n" * (LINES_MAX + 1)),
    (functions_too_long, "bench/a.py", "def f():\n" + "    f()\n" * FUNCTION_LINES_MAX),
    (modules_without_docstring, "src/ringcast/a.py", "x = 1\n"),
    (imports_upwards, "src/ringcast/core/a.py", "from ringcast.layers.flow import Flow\n"),
    (imports_upwards, "src/ringcast/core/a.py", "def f():\n    from .. import presets\n"),
    (imports_upwards, "src/ringcast/runtime/a.py", "import ringcast\n"),
    (imports_upwards, "src/ringcast/novel/a.py", ""),
    (imports_sideways, "src/ringcast/runtime/a.py", "from ringcast import sim\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from .flow import Flow\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from ringcast.layers import Flow\n"),
    (imports_sideways, "src/ringcast/layers/multicast/a.py", "from .nakack4 import NakAck4\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from ringcast.parts.merge import Merge\n"),
    (imports_sideways, "src/ringcast/parts/a.py", "import ringcast.parts.membership.joiner\n"),
    (impure_imports, "src/ringcast/core/a.py", "from time import monotonic\n"),
    (impure_imports, "src/ringcast/core/lockfree.py", "import threading, random\n"),
    (pyspark_outside_spark, "src/ringcast/cli/a.py", "from pyspark.sql import SparkSession\n"),
    (unsafe_code, "tests/a.py", "import pickle\n"),
    (unsafe_code, "tools/a.py", "eval('1')\n"),
    (addresses_in_pins, "requirements/a.txt", "--index-url somewhere\n"),
    (addresses_in_pins, ".ci/run", "curl https://example.org\n"),
    (dead_modules, "src/ringcast/core/a.py", "import ringcast.core.a\n"),
    (sleeps_in_tests, "tests/a.py", "async def f():\n    await asyncio.sleep(0.1)\n"),
    (prints_in_source, "src/ringcast/core/a.py", "print(1)\n"),
]

SOUND: list[tuple[Rule, str, str]] = [
    (files_too_long, "src/ringcast/a.py", "\n" * LINES_MAX),
    (functions_too_long, "bench/a.py", "def f():\n" + "    f()\n" * (FUNCTION_LINES_MAX - 1)),
    (imports_upwards, "src/ringcast/spark/a.py", "from ringcast import presets\nimport ringcast\n"),
    (imports_sideways, "src/ringcast/layers/multicast/a.py", "from .base import Base\n"),
    (imports_sideways, "src/ringcast/parts/membership/a.py", "from .joiner import Joiner\n"),
    (impure_imports, "src/ringcast/core/lockfree.py", "import threading\n"),
    (sleeps_in_tests, "tests/a.py", "async def f():\n    await asyncio.sleep(0)\n"),
    (prints_in_source, "src/ringcast/cli/a.py", "print(1)\n"),
]


def plant(root: Path, path: str, text: str) -> Tree:
    """Make a tree of one file under test, among the files that its imports name."""
    names = ("__init__", "presets", "sim/__init__", "layers/__init__", "layers/flow")
    for file in [*(f"src/ringcast/{name}.py" for name in names), path]:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text if file == path else "")
    return read_tree(root)


@pytest.mark.parametrize(("rule", "path", "text"), SPOILT)
def test_a_rule_notices_what_it_forbids(rule: Rule, path: str, text: str, tmp_path: Path) -> None:
    findings = list(rule(plant(tmp_path, path, text)))
    assert any(finding.startswith(f"{path}:") for finding in findings)


@pytest.mark.parametrize(("rule", "path", "text"), SOUND)
def test_a_rule_allows_what_it_should(rule: Rule, path: str, text: str, tmp_path: Path) -> None:
    findings = list(rule(plant(tmp_path, path, text)))
    assert not any(finding.startswith(f"{path}:") for finding in findings)
