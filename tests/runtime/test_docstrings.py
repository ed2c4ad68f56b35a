"""The examples in the docstrings of public names run as they stand."""

import inspect
import re
import sys
import textwrap
from pathlib import Path

import pytest

import ringcast
from ringcast import presets, sync
from tests.runtime.pages import run
from tests.runtime.support import group_name

EXAMPLES = {
    "ringcast": ringcast,
    "sync": sync,
    "Group": ringcast.Group,
    "StackSpec": ringcast.StackSpec,
    "presets": presets,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs(name: str, tmp_path: Path) -> None:
    found = re.search(r"^ *(?:from|import) .*", inspect.getdoc(EXAMPLES[name]) or "", re.M | re.S)
    assert found is not None, "its docstring has no example"
    example = textwrap.dedent(found[0])
    program = example.replace('join("', f'join("{group_name()}-')
    if "async with" in program:
        body = textwrap.indent(program, "    ")
        program = f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())\n"
    run([sys.executable, "-c", program], tmp_path)
