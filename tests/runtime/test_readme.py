"""The programs of the README and of the how-to pages run as they stand there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.support import ROOT, SOON, group_name

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def programs(page: str) -> list[str]:
    """The blocks of Python in a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@contextmanager
def running(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A program that runs until the test has seen enough."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            yield process
        finally:
            process.kill()


def expect(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdout is not None
    for line in lines:
        assert process.stdout.readline() == f"{line}\n"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_prints_what_the_page_shows(page: str) -> None:
    text = programs(page)[0].replace('"hello"', f'"{group_name()}"')
    with running(text, "ann") as ann:
        expect(ann, "ann says hello from ann")
        with running(text, "bob") as bob:
            expect(bob, "bob says hello from bob")
            expect(ann, "bob says hello from bob")


def expect_success(*arguments: str) -> None:
    """Run Python with these arguments, to a good end."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=4 * SOON,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("index", range(1, len(programs("README.md"))))
def test_the_other_examples_of_the_readme_run(index: int) -> None:
    program = programs("README.md")[index].replace('"prices"', f'"{group_name()}"')
    expect_success("-W", "error", "-c", program)


def test_the_page_on_idempotent_requests_adds_once(tmp_path: Path) -> None:
    """Its handler and its caller in one program; each request is repeated, and counts once."""
    handler, caller = programs("docs/idempotent-requests.md")
    main = f"""
async def serve(group):
    async for _ in group:
        pass

async def main():
    async with ringcast.join("{group_name()}", on_call=on_call) as group:
        serving = asyncio.create_task(serve(group))
        assert await add(group, "ann", 5) == 5
        assert await add(group, "ann", 5) == 10
        again = json.dumps({{"id": next(iter(answers)), "account": "ann", "amount": 5}}).encode()
        replies = await group.call(again)
        assert list(replies.answers.values()) == [b"5"]
        assert accounts == {{"ann": 10}}
        serving.cancel()

asyncio.run(main())
"""
    program = tmp_path / "program.py"
    program.write_text(handler + caller + main)
    expect_success(str(program))


def _prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def test_every_link_of_the_readme_and_the_docs_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", _prose(page.read_text()))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []
