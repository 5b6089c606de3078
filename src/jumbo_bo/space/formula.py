"""A condition on parameters, written as text: parsed by a small grammar and never run as a program.

    x_a + 2 * x_b <= 100          sums, products, comparisons, also chained: 0 < a <= b
    optimizer == 'sgd'            one value
    booster in ['gbtree', 'dart'] one of several
    not (a == 1 and b == 1)       and, or, not, parentheses
    `T (C)` <= 80                 a name that is not a word stands between backticks

Numbers are compared with a relative tolerance of 1e-9, so that 0.1 + 0.2 == 0.3.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

from jumbo_bo.errors import InputError, brief, clip

LONGEST = 1000  # characters
DEEPEST = 50  # levels of parentheses and signs
TOLERANCE = 1e-9
KINDS = 'write comparisons of parameters such as "a + b <= 1" or "kind == \'x\' and not c"'

_SUMS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Absent(Exception):
    """The formula asks for a parameter that this configuration does not have."""


@dataclass(frozen=True)
class Formula:
    """`text` as it was written, `tree` what it means. Built by `parse`."""

    text: str
    tree: ast.expr
    quoted: Mapping[str, str]  # the words that stand for names between backticks

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters it speaks of, in the order it does."""
        found = [self.name(node) for node in ast.walk(self.tree) if isinstance(node, ast.Name)]
        return tuple(dict.fromkeys(found))

    def name(self, node: ast.Name) -> str:
        return self.quoted.get(node.id, node.id)

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Whether this configuration meets it. Raises `Absent` when it decides on a parameter that is not there."""
        return bool(self._value(self.tree, params))

    def _value(self, node: ast.expr, params: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                name = self.name(node)
                if name not in params:
                    raise Absent(name)
                return params[name]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item, params) for item in items]
            case ast.BoolOp(op=op, values=values):
                return self._joined(values, isinstance(op, ast.Or), params)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._truth(operand, params)
            case ast.UnaryOp(op=op, operand=operand):
                value = self._number(operand, params)
                return -value if isinstance(op, ast.USub) else value
            case ast.BinOp(left=left, op=op, right=right):
                try:
                    return _SUMS[type(op)](self._number(left, params), self._number(right, params))
                except (ZeroDivisionError, OverflowError):
                    return math.nan  # no comparison holds
            case ast.Compare(left=left, ops=ops, comparators=others):
                value = self._value(left, params)
                for comparison, other in zip(ops, others, strict=True):
                    before, value = value, self._value(other, params)
                    if not self._compare(before, comparison, value):
                        return False
                return True
        raise TypeError(f"{node} was not refused by parse")

    def _joined(self, parts: Sequence[ast.expr], decisive: bool, params: Mapping[str, Any]) -> bool:
        """Of parts joined by 'or' (a true one decides) or 'and' (a false one does). One that asks for a parameter that
        is not there decides nothing, wherever it stands."""
        absent = None
        for part in parts:
            try:
                if self._truth(part, params) == decisive:
                    return decisive
            except Absent as error:
                absent = error
        if absent is not None:
            raise absent
        return not decisive

    def _truth(self, node: ast.expr, params: Mapping[str, Any]) -> bool:
        value = self._value(node, params)
        if not isinstance(value, bool):
            raise InputError(f"{brief(self.text)}: {brief(value)} is neither true nor false; {KINDS}")
        return value

    def _number(self, node: ast.expr, params: Mapping[str, Any]) -> float:
        value = self._value(node, params)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{brief(self.text)}: {brief(value)} is not a number, so it cannot be part of a sum")
        return value

    def _compare(self, a: Any, op: ast.cmpop, b: Any) -> bool:
        if isinstance(op, ast.In | ast.NotIn):
            return any(equal(a, item) for item in b) == isinstance(op, ast.In)
        if isinstance(op, ast.Eq | ast.NotEq):
            return equal(a, b) == isinstance(op, ast.Eq)
        if not (_numeric(a) and _numeric(b)):
            other = a if _numeric(b) else b
            raise InputError(f"{brief(self.text)}: {brief(other)} has no order; compare it with == or 'in'")
        if isinstance(op, ast.Lt | ast.Gt):
            return not equal(a, b) and (a < b if isinstance(op, ast.Lt) else a > b)
        return equal(a, b) or (a < b if isinstance(op, ast.LtE) else a > b)


def word(name: str) -> str:
    """A parameter as it is named in a formula."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"


def parse(text: str, known: Collection[str]) -> Formula:
    """The formula, in which only the `known` parameters occur."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a condition is {brief(text)}, expected text; {KINDS}")
    if len(text) > LONGEST:
        raise InputError(f"{brief(text)} has {len(text):,} characters, at most {LONGEST:,} are read")
    quoted: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        quoted[f"_quoted{len(quoted)}_"] = found[1]
        return f" {next(reversed(quoted))} "

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as an invalid escape
            tree = ast.parse(re.sub(r"`([^`]+)`", stand_in, text).strip(), mode="eval").body
            formula = Formula(text.strip(), tree, quoted)
            _check(formula, tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{brief(text)} cannot be read as a condition; {KINDS}") from None
    if unknown := [name for name in formula.names if name not in known]:
        raise InputError(f"{brief(text)} speaks of {brief(unknown[0])}, which is no parameter; there are {list(known)}")
    return formula


def _check(formula: Formula, tree: ast.expr) -> None:
    """Refuses whatever is not in the grammar, and a whole that is neither true nor false."""
    if _depth(tree) > DEEPEST:
        raise InputError(f"{brief(formula.text)} is nested too deeply; {KINDS}")
    if not formula.names:
        raise InputError(f"{brief(formula.text)} speaks of no parameter; {KINDS}")
    if not isinstance(tree, ast.Compare | ast.BoolOp | ast.Name) and not _negation(tree):
        raise InputError(f"{brief(formula.text)} is neither true nor false; {KINDS}")
    allowed = (ast.BoolOp, ast.BinOp, ast.Compare, ast.Name, ast.List, ast.Tuple, ast.UnaryOp, ast.Constant)
    marks = (ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd, *_SUMS, ast.Load)
    marks = (*marks, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    lists = [side for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in _lists(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and not isinstance(node.value, str | int | float | None):
            raise InputError(f"{brief(formula.text)}: {brief(node.value)} is no value of a parameter")
        if isinstance(node, ast.List | ast.Tuple) and node not in lists:
            raise InputError(f"{brief(formula.text)}: a list may only follow 'in'")
        if not isinstance(node, (*allowed, *marks)):
            part = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise InputError(f"{brief(formula.text)}: {clip(repr(part))} is not understood; {KINDS}")


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest, level = deepest + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


def _lists(node: ast.Compare) -> list[ast.expr]:
    """What follows 'in'."""
    after = [side for op, side in zip(node.ops, node.comparators, strict=True) if isinstance(op, ast.In | ast.NotIn)]
    for side in after:
        if not isinstance(side, ast.List | ast.Tuple):
            raise InputError(f"{clip(ast.unparse(node))!r}: expected a list after 'in', such as ['a', 'b']")
    return after


def _negation(tree: ast.expr) -> bool:
    return isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(a: Any, b: Any) -> bool:
    """As == in a formula."""
    if _numeric(a) and _numeric(b):
        try:
            return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        except OverflowError:  # an integer beyond all floats
            return bool(a == b)
    return type(a) is type(b) and bool(a == b)
