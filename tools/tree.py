"""The working copy as data, for the tests that keep it tidy: which files, and what each imports."""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SOURCE = ("src/ringcast/", "bench/ringcast_bench/")
"""Folders of what is installed: Ringcast, and its benchmarks as a package beside it."""
BENCH = "ringcast_bench"


@dataclass(frozen=True)
class Module:
    """One Python file, parsed."""

    path: str  # relative to the root of the tree, with forward slashes
    text: str

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node, walked once: most rules ask for all of them."""
        return list(ast.walk(self.syntax))

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def is_script(self) -> bool:
        return self.path.endswith("/__main__.py")

    @property
    def name(self) -> str:
        """The dotted name, of files in src and bench; the path with dots, of others."""
        return (
            self.path.removeprefix("src/")
            .removeprefix("bench/")
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
        return [m for m in self.modules if m.path.startswith(SOURCE)]

    @cached_property
    def names(self) -> set[str]:
        return {m.name for m in self.source}

    def imports(self, module: Module, types: bool = True) -> Iterator[tuple[str, int]]:
        """Yield (dotted name, line) of each import, wherever in the module it stands.

        types: whether to include imports that only a type checker sees."""
        if types:
            if module.path not in self._imports:
                self._imports[module.path] = list(self._imported(module, module.nodes))
            yield from self._imports[module.path]
        else:
            yield from self._imported(module, _executed(module.syntax))

    @cached_property
    def _imports(self) -> dict[str, list[tuple[str, int]]]:
        """The imports of each module by its path, as far as they were asked for."""
        return {}

    def _imported(self, module: Module, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(module, node)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield (inner if inner in self.names else base), node.lineno


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _executed(child)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def area(name: str) -> str:
    """Name what stands right below `ringcast` in a dotted name; the benchmarks are `bench`."""
    if is_within(name, BENCH):
        return "bench"
    return name.split(".")[1] if "." in name else ""


def folder(name: str) -> str:
    """Name the folder or module right below that area in a dotted name."""
    return name.split(".")[2] if name.count(".") > 1 else ""


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def is_ours(name: str) -> bool:
    return is_within(name, "ringcast") or is_within(name, BENCH)


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
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node, ast.unparse(node.func)
