"""Make mutants of a Python file: copies with one small mistake.

Annotations, decorators, docstrings, texts and messages are left alone, since no test of behaviour
could notice; everything else is mutated by the usual operators, see :func:`alternatives`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PAIRS = [(ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr), (ast.Add, ast.Sub), (ast.And, ast.Or)]
PAIRS += [(ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
OTHER: dict[Any, list[Any]] = {one: [other] for pair in PAIRS for one, other in (pair, pair[::-1])} | {
    ast.Mult: [ast.Add],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.BitXor: [ast.BitOr],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
SMALL = 64  # whole numbers up to this one are raised by one, larger ones doubled
SKIPPED = {"annotation", "returns", "decorator_list", "bases", "keywords", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One mutant; ``name`` stays the same as long as the code around it does."""

    file: str
    function: str
    line: int
    change: str
    place: int
    which: int

    @property
    def name(self) -> str:
        return f"{self.file} {self.function}: {self.change}"

    def code(self, source: str) -> str:
        """Return the source of the mutated file."""
        tree = ast.parse(source)
        parent, field, index, *_ = list(places(tree))[self.place]
        put(parent, field, index, alternatives(get(parent, field, index), parent)[self.which])
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """Return all mutants of a file, in the order of its lines."""
    seen: Counter[tuple[str, str]] = Counter()
    for place, (parent, field, index, function, statement) in enumerate(places(ast.parse(source))):
        node = get(parent, field, index)
        for which, other in enumerate(alternatives(node, parent)):
            change = f"{shown(node)} → {shown(other)}"
            if shown(node) != statement:
                change += f"   in   {statement}"
            seen[function, change] += 1
            if seen[function, change] > 1:
                change += f" ({seen[function, change]})"
            yield Mutant(file, function, node.lineno, change, place, which)


Place = tuple[Any, str, "int | None", str, str]


def places(tree: ast.Module) -> Iterator[Place]:
    """Yield every node that may be mutated, with its parent, its place there, its function and its statement."""

    def inside(node: ast.AST, function: str, statement: str) -> Iterator[Place]:
        is_scope = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and "(" not in function
        if is_scope:
            in_class = isinstance(node, ast.ClassDef)
            function = f"{function}{node.name}" + ("." if in_class else "()")
        for field, value in ast.iter_fields(node):
            if field in SKIPPED and isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg, ast.AnnAssign)):
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST) and not is_left_alone(child):
                    text = shown(child) if isinstance(child, ast.stmt) else statement
                    if isinstance(child, (ast.expr, ast.stmt)):
                        yield node, field, index, function.rstrip(".()") or "(module)", text
                    if not isinstance(child, ast.Raise):  # what it raises is a message
                        yield from inside(child, function, text)

    yield from inside(tree, "", "")


def is_left_alone(node: ast.AST) -> bool:
    """Return whether a node is left alone: a text, an import, or the list of public names."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))


def alternatives(node: ast.AST, parent: ast.AST) -> list[Any]:
    """Return the nodes that may replace a node."""
    found: list[Any] = []
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        found += [with_field(node, "op", other()) for other in OTHER.get(type(node.op), [])]
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            for other in OTHER[type(op)]:
                found.append(with_field(node, "ops", [*node.ops[:place], other(), *node.ops[place + 1 :]]))
    if is_negative(node):
        found += [ast.Constant(value) for value in other_values(-node.operand.value)]
    elif isinstance(node, ast.UnaryOp):
        found.append(node.operand)
    if isinstance(node, ast.Constant) and not is_negative(parent):
        found += [ast.Constant(value) for value in other_values(node.value)]
    if (
        isinstance(node, ast.Name)
        and node.id in NAMES
        and isinstance(parent, ast.Call)
        and parent.func is node
    ):
        found.append(ast.Name(NAMES[node.id], ast.Load()))
    if isinstance(node, ast.Attribute) and node.attr in NAMES and isinstance(parent, ast.Call):
        found.append(with_field(node, "attr", NAMES[node.attr]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
        found.append(node.func.value)
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and isinstance(
        node.test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    ):
        found.append(with_field(node, "test", ast.UnaryOp(ast.Not(), node.test)))
    if isinstance(node, (ast.Break, ast.Continue)):
        found.append(ast.Continue() if isinstance(node, ast.Break) else ast.Break())
    if is_effect(node, parent):
        found.append(ast.Pass())
    return found


def is_negative(node: Any) -> bool:
    """Return whether a node is a negative number."""
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    )


def is_effect(node: ast.AST, parent: ast.AST) -> bool:
    """Return whether a statement can be removed without leaving a name undefined."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets)
    if isinstance(node, ast.Return):
        return not isinstance(parent, (ast.FunctionDef, ast.Lambda))
    return isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )


def other_values(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1 if abs(value) <= SMALL else 2 * value]
    return [value + 1.0] if isinstance(value, float) else []


def with_field(node: Any, field: str, value: Any) -> Any:
    """Return a copy of a node that differs in one field."""
    return type(node)(**{**dict(ast.iter_fields(node)), field: value})


def get(parent: ast.AST, field: str, index: int | None) -> Any:
    value = getattr(parent, field)
    return value if index is None else value[index]


def put(parent: ast.AST, field: str, index: int | None, node: Any) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def shown(node: ast.AST) -> str:
    """Return the code of a node on one line; for a statement with a body, its first line."""
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
