"""Reads the tree and keeps it tidy: sizes, import direction, banned names, dead modules.

Each rule is a generator over a `Tree` that yields one line per finding: `file:line: what to do`.
One test per rule runs it over this repository; the last two feed the rules spoilt and sound trees,
so that a rule which finds nothing, or too much, is noticed.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.tree import Module, Tree, area, calls, folder, is_ours, is_within, read_tree

ROOT = Path(__file__).resolve().parents[1]

LINES_MAX = 500
FUNCTION_LINES_MAX = 60

RANKS = {
    "errors": 0,
    "core": 1,
    "ringbuffer": 1,
    "wall_clock": 1,
    **dict.fromkeys(("layers", "control", "services", "closed"), 2),
    **dict.fromkeys(("presets", "protocols", "spec", "transports", "explain", "guarantees"), 3),
    **dict.fromkeys(("journal", "trace", "sim", "runtime", "sync", "job_rows", "gateway"), 4),
    "": 5,  # ringcast/__init__.py: the public names
    "spark": 6,
    **dict.fromkeys(("demo", "bench", "soak"), 7),
    **dict.fromkeys(("cli", "__main__"), 8),
}
"""Imports point to the same rank or a lower one. A new top-level name needs a place here."""

FOLDER_RANKS = {
    "core": {"model": 0, "wire": 1, "stack": 2, "reliable": 3},
    "runtime": {
        **{"system": 0, "net": 1, "loop": 1, "discovery": 2, "member": 3},
        **{"ops": 4, "doctor": 4, "api": 5, "live": 6},
    },
    "sim": {"checks": 0, "engine": 1, "text": 2, "swarm": 2},
    "journal": {"format": 0, "read": 1, "write": 2},
    "spark": {
        "travel": 0,
        "report": 0,
        "schema": 0,
        "java": 0,
        "jobs": 0,
        "session": 1,
        "traces": 1,
    }
    | {"audit": 1, "sweep": 1, "follow": 2},
}
"""The same inside a package: a folder imports itself and folders of a lower rank. Modules beside
the folders stand above all that have a rank. Imports for type checkers only are free."""

MODULES_MAX = 15
"""Modules in one folder, `__init__.py` not counted."""

PURE = ("core", "layers", "control", "services", "ringbuffer")
IMPURE = {
    *("time", "datetime", "random", "secrets", "socket", "selectors", "asyncio", "threading"),
    *("multiprocessing", "concurrent", "subprocess", "signal", "os", "logging"),
}
PURE_EXCEPTIONS = {"ringcast.ringbuffer.ring": {"threading"}}
"""The lock-free ring is about threads, and is pure in every other way."""

UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec"}

SLEEPS_ALLOWED = {
    "tests/runtime/waiting.py": "polls for what no event announces, and blocks an application",
}
"""Test file → why it must sleep, although a sleep proves nothing on a slow machine."""

PRINTERS = ("ringcast.cli", "ringcast.sim.text.show")
"""Modules whose work is to print, beside each __main__; others return what they have to say."""

PLAIN = re.compile(
    r"(?<![a-z])(whoever|somebody"
    r"|so (many|much) (bytes|messages|times|instants|virtual|members|batches|rows|of it|is)"
    r"|(?<!there )(is|are) no (number|member of|command|terminal|address|call"
    r"|protocol|setting|step|trace|frame|endpoint)"
    r"|(one|a) (file|row|line|object|test|entry|frame|field|setting) a [a-z]+)(?![a-z])",
    re.IGNORECASE,
)
"""Phrases that a reader stumbles over: name the role, write "this many", "is not a", "one per"."""
PLAIN_PAGES = re.compile(rf"{PLAIN.pattern}|\b(no|any|every)body\b", re.IGNORECASE)
"""Of pages: the role has a name there, as in "no member"."""
PLAIN_PATHS = ("src/", "bench/", "docs/", "tools/", "tests/", "README.md", "Makefile")
"""Where the phrases above are banned."""

INHERITANCE_MAX = 2
"""Classes of layers/ and control/ in one chain: a protocol, and a base that it shares with another.
The interfaces in core/, Part and Layer, are not counted."""

SHARED_NAMES: dict[str, str] = {
    "Group": "the asynchronous and the blocking face of one API",
    "Member": "a process of the group: real and simulated",
    "Network": "shaped by the kernel for a benchmark, and simulated",
    "Ping": "the same measurement of Ringcast and of the raw socket",
    "Receiver": "of the wire; each peer of the benchmark has one",
    "Sender": "each peer of the benchmark has one",
    "Row": "of a trace, of a job, of a benchmark, of the table of transitions",
}
"""Class names that two modules use, and why. No name may be added without a reason."""


# --- the rules -----------------------------------------------------------------------------------


def files_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        count = len(module.text.splitlines())
        if count > LINES_MAX:
            yield f"{module.at(count)}: {count} lines, at most {LINES_MAX}: split it by concern"


def functions_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in module.nodes:
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


def imports_upwards_in_package(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        ranks = FOLDER_RANKS.get(module.area, {})
        top = len(ranks)  # Of modules beside the folders; no rank of a folder is as high.
        own = ranks.get(folder(module.name), top)
        for name, line in tree.imports(module, types=False):
            if area(name) != module.area or folder(name) in ("", folder(module.name)):
                continue
            rank = ranks.get(folder(name), top)
            if rank > own or rank == own < top:
                yield f"{module.at(line)}: {name} is no lower than this folder in FOLDER_RANKS"


def folders_too_full(tree: Tree) -> Iterator[str]:
    folders = defaultdict[str, list[Module]](list)
    for module in tree.source:
        if not module.is_package:
            folders[module.path.rpartition("/")[0]].append(module)
    for path, modules in folders.items():
        if len(modules) > MODULES_MAX:
            yield f"{modules[0].path}: {len(modules)} modules in {path}, at most {MODULES_MAX}"


def imports_sideways(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        for name, line in tree.imports(module):
            if module.area == "runtime" and is_within(name, "ringcast.sim"):
                yield f"{module.at(line)}: runtime never imports sim"
            elif module.area in ("layers", "control") and not _may_share(module, name):
                yield f"{module.at(line)}: {name} is a neighbour: hand in a port"


def _may_share(module: Module, name: str) -> bool:
    """Tell whether a layer or part may import `name`, as far as its neighbours are concerned."""
    if area(name) not in ("layers", "control") or not is_ours(name):
        return True
    if module.is_package and is_within(name, module.name):
        return True  # a package may gather its own modules
    package = ".".join(name.split(".")[:3])
    if package in ("ringcast.layers", "ringcast.control") or not is_within(module.name, package):
        return False
    # Inside one package everything may be shared but the protocols themselves.
    return module.area == "control" or not name.startswith(f"{package}.nakack")


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
    strings = (n.value for n in module.nodes if isinstance(n, ast.Constant))
    return {s.split(":")[0] for s in strings if isinstance(s, str) and is_ours(s)}


def sleeps_in_tests(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path.startswith("tests/") and module.path not in SLEEPS_ALLOWED:
            for call, called in calls(module):
                is_sleep = called.endswith("Event().wait") or called.split(".")[-1] == "sleep"
                if is_sleep and not _is_zero(call):
                    yield f"{module.at(call)}: a sleep proves nothing: wait for the event itself"


def _is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def prints_in_source(tree: Tree) -> Iterator[str]:
    for module in tree.source:
        if not (module.is_script or any(is_within(module.name, name) for name in PRINTERS)):
            for call, called in calls(module):
                if called == "print":
                    yield f"{module.at(call)}: only the command line prints: return the text"


def stumbling_phrases(tree: Tree) -> Iterator[str]:
    own = "tests/test_tidy.py"  # It names the phrases.
    for path in tree.paths:
        is_read = path.startswith(PLAIN_PATHS) and path.endswith((".py", ".md", "Makefile"))
        if is_read and path != own:
            for number, line in enumerate((tree.root / path).read_text().splitlines(), start=1):
                if found := (PLAIN_PAGES if path.endswith(".md") else PLAIN).search(line):
                    yield f"{path}:{number}: '{found[0]}': see PLAIN in tests/test_tidy.py"


def _classes(tree: Tree) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in tree.source:
        yield from ((module, node) for node in module.syntax.body if isinstance(node, ast.ClassDef))


def deep_inheritance(tree: Tree) -> Iterator[str]:
    ours = [pair for pair in _classes(tree) if pair[0].area in ("layers", "control")]
    bases = {node.name: [_class_name(base) for base in node.bases] for _, node in ours}

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name] if base in bases), default=0)

    for module, node in ours:
        if depth(node.name) > INHERITANCE_MAX:
            yield f"{module.at(node)}: {node.name} is {depth(node.name)} deep: compose it"


def _class_name(base: ast.expr) -> str:
    """The name of a base class, without its module and its type arguments."""
    return ast.unparse(base).split("[")[0].split(".")[-1]


def shared_class_names(tree: Tree) -> Iterator[str]:
    where = defaultdict[str, list[str]](list)
    for module, node in _classes(tree):
        where[node.name].append(module.at(node))
    for name, places in where.items():
        if len(places) > 1 and name not in SHARED_NAMES and not name.startswith("_"):
            yield f"{places[1]}: {name} is also in {places[0]}: one name means one thing"


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


def test_imports_inside_a_package_point_down(tree: Tree) -> None:
    expect_none(imports_upwards_in_package(tree))


def test_folders_are_small(tree: Tree) -> None:
    expect_none(folders_too_full(tree))


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


def test_phrases_are_plain(tree: Tree) -> None:
    expect_none(stumbling_phrases(tree))


def test_inheritance_is_shallow(tree: Tree) -> None:
    expect_none(deep_inheritance(tree))


def test_one_class_name_means_one_thing(tree: Tree) -> None:
    expect_none(shared_class_names(tree))
    counts = Counter(node.name for _, node in _classes(tree))
    unused = [name for name in SHARED_NAMES if counts[name] < 2]
    assert not unused, f"SHARED_NAMES names classes that are shared no more: {unused}"


# --- the rules themselves ------------------------------------------------------------------------

SPOILT: list[tuple[Rule, str, str]] = [
    (files_too_long, "src/ringcast/a.py", "\n" * (LINES_MAX + 1)),
    (functions_too_long, "bench/a.py", "def f():\n" + "    f()\n" * FUNCTION_LINES_MAX),
    (modules_without_docstring, "src/ringcast/a.py", "x = 1\n"),
    (imports_upwards, "src/ringcast/core/a.py", "from ringcast.layers.flow.layer import Flow\n"),
    (imports_upwards, "src/ringcast/core/a.py", "def f():\n    from .. import presets\n"),
    (imports_upwards, "src/ringcast/runtime/a.py", "import ringcast\n"),
    (imports_upwards, "src/ringcast/novel/a.py", ""),
    (imports_upwards, "src/ringcast/soak/a.py", "from ringcast.cli.main import main\n"),
    (imports_upwards, "src/ringcast/spark/a.py", "import ringcast_bench.run\n"),
    (imports_upwards, "bench/ringcast_bench/a.py", "import ringcast.cli.main\n"),
    (imports_upwards_in_package, "src/ringcast/core/model/a.py", "import ringcast.core.wire.b\n"),
    (imports_upwards_in_package, "src/ringcast/sim/text/a.py", "import ringcast.sim.trial\n"),
    (imports_upwards_in_package, "src/ringcast/sim/text/a.py", "import ringcast.sim.swarm.b\n"),
    (folders_too_full, "src/ringcast/core/a.py", ""),
    (imports_sideways, "src/ringcast/runtime/a.py", "from ringcast import sim\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from .flow import Flow\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from ringcast.layers import Flow\n"),
    (imports_sideways, "src/ringcast/layers/multicast/a.py", "from .nakack4 import NakAck4\n"),
    (imports_sideways, "src/ringcast/layers/a.py", "from ringcast.control.merge import Merge\n"),
    (imports_sideways, "src/ringcast/control/a.py", "import ringcast.control.membership.joiner\n"),
    (impure_imports, "src/ringcast/core/a.py", "from time import monotonic\n"),
    (impure_imports, "src/ringcast/ringbuffer/ring.py", "import threading, random\n"),
    (pyspark_outside_spark, "src/ringcast/cli/a.py", "from pyspark.sql import SparkSession\n"),
    (unsafe_code, "tests/a.py", "import pickle\n"),
    (unsafe_code, "tools/a.py", "eval('1')\n"),
    (addresses_in_pins, "requirements/a.txt", "--index-url somewhere\n"),
    (addresses_in_pins, ".ci/run", "curl https://example.org\n"),
    (dead_modules, "src/ringcast/core/a.py", "import ringcast.core.a\n"),
    (sleeps_in_tests, "tests/a.py", "async def f():\n    await asyncio.sleep(0.1)\n"),
    (sleeps_in_tests, "tests/a.py", "threading.Event().wait(0.1)\n"),
    (prints_in_source, "src/ringcast/core/a.py", "print(1)\n"),
    (stumbling_phrases, "docs/a.md", "Whoever sends, waits.\n"),
    (stumbling_phrases, "src/ringcast/cli/a.py", "# One file a command.\n"),
    (stumbling_phrases, "docs/a.md", "Nobody answers.\n"),
    (
        deep_inheritance,
        "src/ringcast/layers/a.py",
        "class A(Layer): ...\nclass B(A): ...\nclass C(B): ...\n",
    ),
    (shared_class_names, "src/ringcast/a.py", "class A: ...\nclass A: ...\n"),
]

SOUND: list[tuple[Rule, str, str]] = [
    (files_too_long, "src/ringcast/a.py", "\n" * LINES_MAX),
    (functions_too_long, "bench/a.py", "def f():\n" + "    f()\n" * (FUNCTION_LINES_MAX - 1)),
    (imports_upwards, "src/ringcast/spark/a.py", "from ringcast import presets\nimport ringcast\n"),
    (imports_upwards_in_package, "src/ringcast/sim/a.py", "import ringcast.sim.text.b\n"),
    (imports_sideways, "src/ringcast/layers/multicast/a.py", "from .base import Base\n"),
    (imports_sideways, "src/ringcast/control/membership/a.py", "from .joiner import Joiner\n"),
    (impure_imports, "src/ringcast/ringbuffer/ring.py", "import threading\n"),
    (sleeps_in_tests, "tests/a.py", "async def f():\n    await asyncio.sleep(0)\n"),
    (prints_in_source, "src/ringcast/cli/a.py", "print(1)\n"),
    (stumbling_phrases, "docs/a.md", "No room: `test_nobody_waits`. One row per run.\n"),
    (deep_inheritance, "src/ringcast/layers/a.py", "class A(Layer): ...\nclass B(A): ...\n"),
    (shared_class_names, "src/ringcast/a.py", "class Member: ...\nclass Member: ...\n"),
]


def plant(root: Path, path: str, text: str) -> Tree:
    """Make a tree of one file under test, among the files that its imports name."""
    names = ("__init__", "presets", "sim/__init__", "layers/__init__", "layers/flow")
    crowd = (f"core/crowd{number}" for number in range(MODULES_MAX))
    for file in [*(f"src/ringcast/{name}.py" for name in (*names, *crowd)), path]:
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
