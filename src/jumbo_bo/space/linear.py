"""Which parts of a condition say that a weighted sum of numbers lies between two ends.

Notation
    c       weights, by parameter
    low <= sum of c_i x_i <= high
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jumbo_bo.space.formula import Formula

Sum = tuple[dict[str, float], float]  # weights, and a constant


@dataclass(frozen=True)
class Linear:
    c: Mapping[str, float]
    low: float  # -inf: no such end
    high: float
    strict: bool = False  # the ends themselves are outside

    def total(self, params: Mapping[str, Any]) -> float:
        return math.fsum(weight * params[name] for name, weight in self.c.items())


def linear_parts(formula: Formula) -> list[Linear] | None:
    """What the formula says, all of it; None when some part is no bound on a sum."""
    parts: list[Linear] = []
    for node in _parts(formula.tree):
        if not isinstance(node, ast.Compare):
            return None
        sides = [_sum(formula, side) for side in (node.left, *node.comparators)]
        for a, op, b in zip(sides, node.ops, sides[1:], strict=False):
            part = None if a is None or b is None else _bound(a, op, b)
            if part is None:
                return None
            parts.append(part)
    return parts


def _parts(tree: ast.expr) -> Iterator[ast.expr]:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        for value in tree.values:
            yield from _parts(value)
    else:
        yield tree


def _bound(a: Sum, op: ast.cmpop, b: Sum) -> Linear | None:
    c = {name: weight for name in {**a[0], **b[0]} if (weight := a[0].get(name, 0.0) - b[0].get(name, 0.0)) != 0}
    rest = b[1] - a[1]
    if not c or not math.isfinite(rest) or not all(map(math.isfinite, c.values())):
        return None
    match op:
        case ast.Eq():
            return Linear(c, rest, rest)
        case ast.LtE() | ast.Lt():
            return Linear(c, -math.inf, rest, isinstance(op, ast.Lt))
        case ast.GtE() | ast.Gt():
            return Linear(c, rest, math.inf, isinstance(op, ast.Gt))
    return None


def _sum(formula: Formula, node: ast.expr) -> Sum | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return {}, float(value)
        case ast.Name():
            return {formula.name(node): 1.0}, 0.0
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            inner = _sum(formula, operand)
            return inner if inner is None or isinstance(sign, ast.UAdd) else _scaled(inner, -1.0)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _sum(formula, left), _sum(formula, right)
            return None if a is None or b is None else _joined(a, op, b)
    return None


def _joined(a: Sum, op: ast.operator, b: Sum) -> Sum | None:
    match op:
        case ast.Add():
            return {n: a[0].get(n, 0.0) + b[0].get(n, 0.0) for n in {**a[0], **b[0]}}, a[1] + b[1]
        case ast.Sub():
            return _joined(a, ast.Add(), _scaled(b, -1.0))
        case ast.Mult():
            return _scaled(a, b[1]) if not b[0] else _scaled(b, a[1]) if not a[0] else None
        case ast.Div():
            return _scaled(a, 1.0 / b[1]) if not b[0] and b[1] != 0 else None
    return None


def _scaled(part: Sum, factor: float) -> Sum:
    return {name: factor * weight for name, weight in part[0].items()}, factor * part[1]
