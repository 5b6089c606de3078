"""What a configuration has to meet beyond the ranges of its parameters.

A constraint is text (`formula.py`) or a Python function of the configuration. Text that bounds a weighted sum of
numbers, such as "a + b <= 1" or "a + b + c == 100", is known as such: the search moves along it (`region.py`).
Everything else is asked, one configuration at a time.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Axis, Continuous, Nominal, Ordinal
from jumbo_bo.space.formula import Absent, Formula, parse
from jumbo_bo.space.linear import Linear, linear_parts
from jumbo_bo.space.values import is_number, same

Predicate = Callable[[Mapping[str, Any]], bool]

TOLERANCE = 1e-9  # of the largest number in a sum


@dataclass(frozen=True)
class Rule:
    """One constraint: a sum with bounds, else a formula or a function to ask."""

    text: str  # as it was written, or the name of the function
    names: tuple[str, ...]  # of the parameters it looks at
    sums: tuple[Linear, ...] = ()
    formula: Formula | None = None
    asked: Predicate | None = None

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Sums are compared in `Sums`, all of them at once."""
        if self.formula is not None:
            try:
                return self.formula.holds(params)
            except Absent:  # it says nothing of configurations without that parameter
                return True
        assert self.asked is not None
        try:
            answer = self.asked(dict(params))
        except Exception as error:
            raise InputError(
                f"the constraint {self.text} failed on {brief(dict(params))}: {type(error).__name__}: {error}"
            ) from error
        try:
            return bool(answer)
        except (TypeError, ValueError):
            raise InputError(f"the constraint {self.text} returned {brief(answer)}, expected True or False") from None


def checked(constraints: Any) -> tuple[str | Predicate, ...]:
    """As they were given, each of a kind that is understood."""
    if isinstance(constraints, str) or callable(constraints):
        raise InputError(f'constraints is {brief(constraints)}, expected a list, such as ["a + b <= 1"]')
    found = tuple(constraints)
    for constraint in found:
        if not isinstance(constraint, str) and not callable(constraint):
            raise InputError(f'the constraint {brief(constraint)} is neither text such as "a + b <= 1" nor a function')
    return found


def rules_of(constraints: Sequence[str | Predicate], axes: Mapping[str, Axis]) -> tuple[Rule, ...]:
    return tuple(_rule(constraint, axes) for constraint in constraints)


def _rule(constraint: str | Predicate, axes: Mapping[str, Axis]) -> Rule:
    if not isinstance(constraint, str):
        return Rule(name_of(constraint), tuple(axes), asked=constraint)
    formula = parse(constraint, list(axes))
    for node in ast.walk(formula.tree):
        _check_kinds(formula, node, axes)
    parts = linear_parts(formula)
    return Rule(formula.text, formula.names, tuple(parts)) if parts else Rule(formula.text, formula.names, (), formula)


def name_of(predicate: Predicate) -> str:
    return f"{getattr(predicate, '__name__', type(predicate).__name__)}()"


def identity(constraint: str | Predicate) -> str:
    """Changes with what the constraint says: for a function, with its code."""
    if isinstance(constraint, str):
        return " ".join(constraint.split())
    code = getattr(constraint, "__code__", None)
    where = f"{getattr(constraint, '__module__', '')}.{getattr(constraint, '__qualname__', type(constraint).__name__)}"
    if code is None:
        return where
    plain = [c for c in code.co_consts if isinstance(c, str | int | float | bool | tuple | None)]
    return f"{where} {hashlib.sha256(code.co_code + repr((plain, code.co_names)).encode()).hexdigest()}"


def _check_kinds(formula: Formula, node: ast.AST, axes: Mapping[str, Axis]) -> None:
    """A sum of texts and a choice that does not exist are mistakes, and would otherwise hold never or always."""
    match node:
        case ast.BinOp(left=left, right=right):
            numeric = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            numeric = [operand]
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            numeric = []
            for a, op, b in zip(sides, ops, others, strict=False):
                if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    numeric += [a, b]
                else:
                    _check_choices(formula, a, b, axes)
                    _check_choices(formula, b, a, axes)
        case _:
            return
    for side in numeric:
        if isinstance(side, ast.Name) and not is_numeric(axes[formula.name(side)]):
            raise InputError(
                f"{brief(formula.text)}: {formula.name(side)!r} is {axes[formula.name(side)].describe()}, not a "
                "number; compare it with == or 'in'"
            )
        if isinstance(side, ast.Constant) and not is_number(side.value):
            raise InputError(f"{brief(formula.text)}: {brief(side.value)} is not a number")


def is_numeric(axis: Axis) -> bool:
    return isinstance(axis, Continuous | Ordinal)


def _check_choices(formula: Formula, side: ast.expr, other: ast.expr, axes: Mapping[str, Axis]) -> None:
    axis = axes[formula.name(side)] if isinstance(side, ast.Name) else None
    if axis is None:
        return
    items = other.elts if isinstance(other, ast.List | ast.Tuple) else [other]
    values = [item.value for item in items if isinstance(item, ast.Constant)]
    if isinstance(axis, Nominal):
        known: Collection[Any] = {same(choice) for choice in axis.choices}
        wrong = [value for value in values if same(value) not in known]
    else:
        wrong = [value for value in values if not is_number(value)]
    if wrong:
        assert isinstance(side, ast.Name)
        raise InputError(
            f"{brief(formula.text)}: {formula.name(side)!r} is never {brief(wrong[0])}; it is {axis.describe()}"
        )
