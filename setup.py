"""The package page: the README, with links that also work outside the repository.

Links that are relative in README.md lead to the `Source` of `[project.urls]`. Without one they
become plain text, since a package page cannot follow them; of a picture its description is left.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)")
"""A relative link or picture: `!` for a picture, its text and its target."""


def package_page(readme: str, source: str | None) -> str:
    """The text of the package page; source: the address of the repository's files."""

    def absolute(link: re.Match[str]) -> str:
        mark, text, target = link.groups()
        return f"{mark}[{text}]({source.rstrip('/')}/{target})" if source else text

    return LINK.sub(absolute, readme)


def source_address() -> str | None:
    """The address of the repository's files, from the project's metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = project.get("urls", {}).get("Source")
    return str(found) if found else None


if __name__ == "__main__":
    from setuptools import setup

    setup(
        long_description=package_page((ROOT / "README.md").read_text(), source_address()),
        long_description_content_type="text/markdown",
    )
