"""How a guard is weakened: what each operator does to a syntax tree, one place at a time."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

Change: TypeAlias = Callable[[ast.AST], ast.AST | None]

_LOOSER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """A module's source with one thing changed; `line` and `what` say where and how."""

    line: int
    what: str
    source: str


def refusal_dropped(node: ast.AST) -> ast.AST | None:
    """`Ruling(name, detail, Reason.X, ...)` lets pass: the same words without the reason."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Ruling"):
        return None
    named = [word for word in node.keywords if word.arg not in {"reason", "remedy"}]
    if len(node.args) < 3 and len(named) == len(node.keywords):
        return None
    return ast.Call(func=node.func, args=node.args[:2], keywords=named)


def condition_never(node: ast.AST) -> ast.AST | None:
    """What an `if` asks is never so."""
    if isinstance(node, ast.If | ast.IfExp):
        changed = copy.copy(node)
        changed.test = ast.Constant(value=False)
        return changed
    return None


def bound_moved(node: ast.AST) -> ast.AST | None:
    """A comparison with its bound moved by one, or turned round."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _LOOSER:
        return ast.Compare(left=node.left, ops=[_LOOSER[type(node.ops[0])]()], comparators=node.comparators)
    return None


def operand_lost(node: ast.AST) -> ast.AST | None:
    """`a and b`, `a or b` without the last part."""
    if isinstance(node, ast.BoolOp):
        rest = node.values[:-1]
        return rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
    return None


def guards_removed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """A list of guards without each of them in turn."""
    if not isinstance(node, ast.Tuple):
        return
    names = [element.id for element in node.elts if isinstance(element, ast.Name)]
    if not names or len(names) < len(node.elts) or not all(name.startswith("guard_") for name in names):
        return
    for number, name in enumerate(names):
        rest = [*node.elts[:number], *node.elts[number + 1 :]]
        yield f"{name} removed", ast.Tuple(elts=rest, ctx=node.ctx)


OPERATORS: Final[tuple[Change, ...]] = (refusal_dropped, condition_never, bound_moved, operand_lost)


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a module."""
    for place, node in enumerate(ast.walk(ast.parse(source))):
        for change in OPERATORS:
            if changed := change(node):
                yield _mutant(source, place, changed, change.__name__)
        for what, rest in guards_removed(node):
            yield _mutant(source, place, rest, what)


def _mutant(source: str, place: int, changed: ast.AST, what: str) -> Mutant:
    tree = ast.parse(source)
    target = list(ast.walk(tree))[place]
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, field, changed)
            elif isinstance(value, list):
                setattr(parent, field, [changed if item is target else item for item in value])
    return Mutant(getattr(target, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(tree)))
