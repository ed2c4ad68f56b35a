"""The working copy as data, for the tests that keep it tidy: which files, and what each imports."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """One Python file, parsed."""

    path: str  # relative to the root of the tree, with forward slashes
    text: str

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def is_script(self) -> bool:
        return self.path.endswith("/__main__.py")

    @property
    def name(self) -> str:
        """The dotted name, of files in src; the path with dots, of others."""
        return (
            self.path.removeprefix("src/")
            .removesuffix(".py")
            .removesuffix("/__init__")
            .replace("/", ".")
        )

    @property
    def area(self) -> str:
        """The folder or file right below ringcast/; empty for ringcast/__init__.py."""
        return area(self.name)

    def at(self, node: ast.expr | ast.stmt | int) -> str:
        return f"{self.path}:{node if isinstance(node, int) else node.lineno}"


@dataclass(frozen=True)
class Tree:
    """The files of a working copy."""

    root: Path
    paths: list[str]

    @cached_property
    def modules(self) -> list[Module]:
        return [Module(p, (self.root / p).read_text()) for p in self.paths if p.endswith(".py")]

    @cached_property
    def source(self) -> list[Module]:
        return [m for m in self.modules if m.path.startswith("src/ringcast/")]

    @cached_property
    def names(self) -> set[str]:
        return {m.name for m in self.source}

    def imports(self, module: Module) -> Iterator[tuple[str, int]]:
        """Yield (dotted name, line) of each import, wherever in the module it stands."""
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(module, node)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield (inner if inner in self.names else base), node.lineno


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def area(name: str) -> str:
    """Name what stands right below `ringcast` in a dotted name."""
    return name.split(".")[1] if "." in name else ""


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def is_ours(name: str) -> bool:
    return is_within(name, "ringcast")


def read_tree(root: Path) -> Tree:
    """List the files at `root` that git knows or would add, or all where git does not know it."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    if listed is None or _git(root, "rev-parse", "--show-prefix") != "\n":
        found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
        paths = [p.as_posix() for p in found if not _is_litter(p)]
    else:
        paths = [p for p in listed.split("\0") if p and (root / p).is_file()]
    return Tree(root, sorted(set(paths)))


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", root, *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def _is_litter(path: Path) -> bool:
    hidden = any(part.startswith(".") and part != ".ci" for part in path.parts[:-1])
    return hidden or bool({"__pycache__", "build", "dist"} & set(path.parts))


def calls(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield every call whose callee is a plain or dotted name, with that name."""
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node, ast.unparse(node.func)
