"""What follows from the code is as the code has it: tests of a module, pages of the reference."""

from pathlib import Path

import pytest

from tools.reference.pages import FOLDER, PAGES
from tools.tests_of import TESTED_BY, find_tests
from tools.tree import Tree, read_tree

ROOT = Path(__file__).resolve().parents[1]
MIRRORED = ("core", "layers", "control")


def untested(tree: Tree) -> list[str]:
    """The modules without a test, each with what to do."""
    return [
        f"{module.path}: no test of it is found: write its mirror below tests/unit"
        for module in tree.source
        if module.area in MIRRORED and not module.is_package and not find_tests(tree, module)
    ]


def test_every_module_of_the_pure_code_has_a_test_that_can_be_found() -> None:
    tree = read_tree(ROOT)
    assert untested(tree) == []
    assert set(TESTED_BY.values()) <= set(tree.paths)


def test_a_module_is_tested_by_its_mirror_or_by_a_test_that_imports_it(tmp_path: Path) -> None:
    files = {
        "src/ringcast/control/a.py": "",
        "src/ringcast/control/b.py": "",
        "src/ringcast/control/c.py": "",
        "tests/unit/control/test_a.py": "",
        "tests/sim/test_all.py": "import ringcast.control.b\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = untested(read_tree(tmp_path))
    assert [line.split(":")[0] for line in found] == ["src/ringcast/control/c.py"]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    """When this fails: python -m tools.reference"""
    assert (FOLDER / name).read_text() == PAGES[name]()
