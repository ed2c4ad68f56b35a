"""The ways to break a function: each mutant is one small change to the syntax of one module.

Left alone are what no test should hold: assertions, texts of errors, annotations, docstrings,
defaults and decorators. Only code in functions is changed, so that a mutant needs no import anew.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
SKIPPED_FIELDS = ("annotation", "returns", "args", "decorator_list", "bases", "keywords")
"""Of a function, a class or an assignment: what is not run with the body."""
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
DEFINITIONS = (*NAMED, ast.Lambda, ast.AnnAssign)

FunctionKey = tuple[str, int]
"""Qualified name and first line: properties share a name with their setters."""


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and what it says."""

    path: str
    place: int  # counted over `places`
    variant: int  # counted over `changes` of that place
    line: int
    statement: int  # the line where the statement begins: the one that a run is seen at
    function: str
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.where}"

    @property
    def where(self) -> str:
        """What stays when lines are added above."""
        return f"{self.function}: {self.change}"


@dataclass(frozen=True)
class Place:
    """A node inside a function, and the field of its parent that holds it."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    function: str
    statement: int

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    found = []
    for number, place in enumerate(places(ast.parse(text))):
        before = ast.unparse(place.node)
        for variant, changed in enumerate(changes(place)):
            after = ast.unparse(changed)
            line = getattr(place.node, "lineno", place.statement)
            what = f"{_short(before)} → {_short(after)}"
            found.append(Mutant(path, number, variant, line, place.statement, place.function, what))
    return found


def code_of(mutant: Mutant, text: str, filename: str) -> dict[FunctionKey, CodeType]:
    """The functions of the module with this one change, compiled."""
    tree = ast.parse(text)
    place = list(places(tree))[mutant.place]
    place.put(list(changes(place))[mutant.variant])
    module = compile(ast.fix_missing_locations(tree), filename, "exec")
    return {(code.co_qualname, code.co_firstlineno): code for code in _nested(module)}


def places(tree: ast.Module) -> Iterator[Place]:
    """The nodes that may be changed: those in functions."""
    return _places(tree, "", 0, in_function=False)


def _places(node: ast.AST, function: str, line: int, in_function: bool) -> Iterator[Place]:
    for field, index, child in _children(node):
        if isinstance(child, ast.Assert | ast.JoinedStr) or _is_docstring(child):
            continue
        at = child.lineno if isinstance(child, ast.stmt) else line
        if in_function and not isinstance(child, NAMED):
            yield Place(node, field, index, child, function, at)
        if isinstance(child, ast.Raise):
            continue  # Its expression is a text for people.
        name = f"{function}.{child.name}".lstrip(".") if isinstance(child, NAMED) else function
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _places(child, name, at, inside)


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(node, DEFINITIONS) and field in SKIPPED_FIELDS:
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, index, item


def changes(place: Place) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    node = place.node
    if isinstance(node, ast.stmt):
        # An attribute that is never set fails at its first use: it would only flatter the score.
        yield from _of_statement(node, is_initial=place.function.endswith(".__init__"))
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)
        if place.field == "test" and not isinstance(node, ast.Compare | ast.UnaryOp):
            yield ast.copy_location(ast.UnaryOp(ast.Not(), copy.deepcopy(node)), node)


def _of_statement(node: ast.stmt, is_initial: bool) -> Iterator[ast.AST]:
    nothing = ast.copy_location(ast.Pass(), node)
    match node:
        case ast.AugAssign() if type(node.op) in COMPUTED:
            yield _with(node, op=COMPUTED[type(node.op)]())
            yield nothing
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield _with(node, value=None)
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)
        case ast.Raise() | ast.Delete():
            yield nothing
        case ast.Expr(value=ast.Call()) if not is_initial:
            yield nothing
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if not is_initial:
            yield nothing


def _of_expression(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BinOp() if type(node.op) in COMPUTED and not _is_text(node):
            yield _with(node, op=COMPUTED[type(node.op)]())
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield copy.deepcopy(node.operand)
        case ast.Constant(value=bool(value)):
            yield _with(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield _with(node, value=value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            yield _with(node, func=ast.copy_location(ast.Name(CALLED[name], ast.Load()), node))


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        changed = copy.deepcopy(node)
        changed.ops[index] = COMPARED[type(operator)]()
        yield changed


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(s, ast.JoinedStr) for s in sides) or any(
        isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides
    )


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}…"
