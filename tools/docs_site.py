"""Hooks of mkdocs for `make docs`: the repository's own links work in the site.

- A folder in the nav (`decisions/`) stands for its pages. Pages that it does not name come last.
- A link that leaves docs/ leads to a page made from the file or folder that it names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=(#[^)]*)?\))")
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
PROJECT = "project"
"""The folder of the site for pages made from files outside docs/."""
LANGUAGES = {
    **{".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"},
    **{".json": "json", ".ipynb": "json"},
}


def on_config(config: Any) -> Any:
    """Fill in the nav."""
    named = set(_named(config["nav"]))
    listed = [page for page in pages() if not _is_covered(page, named)]
    config["nav"] = _expanded(config["nav"])
    if listed:
        config["nav"].append({"More": listed})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each file or folder outside docs/ that a page links to."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    for target in sorted(outside()):
        uri = page_of(target)
        made = rewritten(text_of(target), target, uri)
        files.append(File.generated(config, uri, content=made))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the pages made from what they name; mend code in tables."""
    uri = page.file.src_uri
    if not uri.startswith(PROJECT):
        markdown = rewritten(markdown, f"docs/{uri}", uri)
    return with_bars_in_code(markdown)


def with_bars_in_code(markdown: str) -> str:
    """Code in tables without the escapes of `|`, which GitHub needs and the site would show."""

    def mended(row: re.Match[str]) -> str:
        return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])

    return re.sub(r"^\|.*$", mended, markdown, flags=re.MULTILINE)


def pages() -> list[str]:
    """The pages in docs/, from there."""
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _named(entry)


def _is_covered(page: str, named: set[str]) -> bool:
    return page in named or f"{posixpath.dirname(page)}/" in named


def _expanded(nav: Any) -> Any:
    """The nav with the pages of a folder in its place."""
    if isinstance(nav, dict):
        return {title: _expanded(entry) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [_expanded(entry) for entry in nav]
    if not nav.endswith("/"):
        return nav
    found = [page for page in pages() if posixpath.dirname(page) == nav.rstrip("/")]
    return sorted(found, key=lambda page: not page.endswith("README.md"))


def page_of(target: str) -> str:
    """Where in the site the page of a file or folder outside docs/ is."""
    return f"{PROJECT}/{target.removesuffix('.md')}.md"


def outside() -> set[str]:
    """The files and folders outside docs/ that pages link to, and those that these link to."""
    found: set[str] = set()
    todo = [(DOCS / page).relative_to(ROOT).as_posix() for page in pages()]
    while todo:
        source = todo.pop()
        for target in targets(source):
            if not target.startswith("docs/") and target not in found:
                found.add(target)
                if target.endswith(".md"):
                    todo.append(target)
    return found


def targets(source: str) -> Iterator[str]:
    """What the links of a page lead to, from the root; links to other sites are left out."""
    for part in CODE.split((ROOT / source).read_text())[::2]:
        for link, _ in LINK.findall(part):
            if target := resolved(link, source):
                yield target


def resolved(link: str, source: str) -> str:
    """The path from the root that a link of this page means; empty for other sites."""
    if "://" in link or link.startswith("mailto:"):
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def rewritten(markdown: str, source: str, uri: str) -> str:
    """The text of a page with its links as they have to be in the site."""

    def place(link: re.Match[str]) -> str:
        target = resolved(link[1], source)
        if not target or (target.startswith("docs/") and source.startswith("docs/")):
            return link[1]
        inside = target.removeprefix("docs/") if target.startswith("docs/") else page_of(target)
        if (ROOT / target).is_dir() and target.startswith("docs/"):
            inside += "/README.md"
        return posixpath.relpath(inside, posixpath.dirname(uri) or ".")

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(place, part) for part in parts[::2]]
    return "".join(parts)


def text_of(target: str) -> str:
    """The page of a file or of all files of a folder."""
    path = ROOT / target
    if target.endswith(".md"):
        return path.read_text()
    files = sorted(p for p in path.rglob("*") if _is_shown(p)) if path.is_dir() else [path]
    blocks = [f"# {target}"]
    for file in files:
        if path.is_dir():
            blocks.append(f"## {file.relative_to(path).as_posix()}")
        blocks.append(f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}````")
    return "\n\n".join(blocks) + "\n"


def _is_shown(path: Path) -> bool:
    is_made = {"__pycache__", "build"} & set(path.parts) or ".egg-info" in str(path)
    is_hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    return path.is_file() and not is_made and not is_hidden
