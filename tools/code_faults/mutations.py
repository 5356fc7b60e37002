"""Finds the places of source code to which an operator of mutation testing applies."""

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_MESSAGES = ("log", "say", "print", "warn", "report", "overload", "cast")


class Mutation(NamedTuple):
    """One changed place of a source file.

    Attributes:
        line: Number of its line, starting at 1.
        before, after: Expression or statement without and with the change, on one line.
        old: Whole lines with the place; they occur once in the file.
        new: These lines with the change.
    """

    line: int
    before: str
    after: str
    old: str
    new: str


def find_mutations(text: str) -> Iterator[Mutation]:
    """Yields the mutations of a source file, in the order of their places."""
    lines = text.splitlines(keepends=True)
    for node in _walk(ast.parse(text)):
        place = node.test if isinstance(node, ast.If | ast.While | ast.IfExp) else node
        changed = _change(node)
        if changed and isinstance(place, ast.expr | ast.stmt):
            after = ast.unparse(changed)
            if isinstance(place, ast.expr) and not isinstance(place, ast.Constant):
                after = f"({after})"
            yield _locate(lines, place, after)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes with behavior: no annotations, messages or formatted strings."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call) and _name(call.func).strip("_") in _MESSAGES:
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _name(function: ast.expr) -> str:
    """Returns the last name of a called expression."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _change(node: ast.AST) -> ast.AST | None:
    """Returns what replaces a node, or its condition; None if nothing does."""
    changed: Any = copy.copy(node)
    match changed:
        case ast.Compare(ops=[operator]) if type(operator) in _SWAPPED:
            changed.ops = [_swap(operator)]
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if (
            type(changed.op) in _SWAPPED
        ):
            changed.op = _swap(changed.op)
        case ast.UnaryOp(op=ast.Not()):
            return changed.operand
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            # Comparisons and negations have changes of their own.
            if isinstance(test, ast.Compare | ast.UnaryOp):
                return None
            return ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool()):
            changed.value = not changed.value
        case ast.Constant(value=int() | float() as number):
            changed.value = number + 1
        case ast.Return(value=ast.Constant(value=None)):
            return None
        case ast.Return(value=ast.expr()):
            changed.value = None
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case _:
            return None
    return changed


def _swap(operator: ast.AST) -> Any:
    """Returns the operator that replaces another one."""
    return _SWAPPED[type(operator)]()


def _locate(lines: list[str], node: ast.expr | ast.stmt, after: str) -> Mutation:
    """Returns the change as a replacement of whole lines that occur once."""
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    place = "".join(lines[first:last]).encode()
    tail = len(lines[last - 1].encode()) - (node.end_col_offset or 0)
    before = place[node.col_offset : len(place) - tail]
    new = (
        place[: node.col_offset] + after.encode() + place[len(place) - tail :]
    ).decode()
    old, text = place.decode(), "".join(lines)
    while text.count(old) > 1:
        first -= 1
        old, new = lines[first] + old, lines[first] + new
    return Mutation(node.lineno, " ".join(before.decode().split()), after, old, new)
