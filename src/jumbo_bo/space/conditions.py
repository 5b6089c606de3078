"""Parameters that exist only under a condition, such as max_depth when booster == 'gbtree'.

Notation
    u       (m, d) points of the unit cube
    there   (m, d) which parameters each configuration has
    rest    (d,)   where u stands for a parameter that is not there, in the middle of its range
    T(rest) (D,)   its columns of T(u); for choices their average, as far from one as from another

So configurations that differ in nothing but parameters they do not have are one and the same point.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Array, Axis, Nominal, Ordinal, centres
from jumbo_bo.space.formula import Absent, Formula, equal, parse

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

MOST_LOOKED_AT = 4096  # combinations of the parameters that decide, when a condition is checked
MOST_COUNTED = 1_000_000  # ... when configurations are counted


@dataclass(frozen=True, eq=False)
class Conditions:
    """Built by `conditions_of`, which checks them."""

    names: tuple[str, ...]
    axes: tuple[Axis, ...]
    formulas: Mapping[int, Formula]  # by parameter; those that others depend on come first

    def there(self, u: Array) -> Mask:  # (m, d) -> (m, d)
        """A coordinate of u that is not finite is a parameter that nothing is known of."""
        found = np.ones(u.shape, dtype=bool)
        for i in self.formulas:
            found[:, i] = self.exists(i, u, found)
        return found

    def exists(self, i: int, u: Array, there: Mask) -> Mask:  # (m, d), (m, d) -> (m,)
        """Column i of `there`, of which those of the parameters that decide about i are known."""
        formula = self.formulas[i]
        deciding = [self.names.index(name) for name in formula.names]
        known = there[:, deciding] & np.isfinite(u[:, deciding])
        columns = [self._cells(j, u[:, j], ok) for j, ok in zip(deciding, known.T, strict=True)]
        first, back = _distinct(columns)
        rows = [{j: columns[k][n] for k, j in enumerate(deciding) if known[n, k]} for n in first]
        return np.array([self._holds(formula, row) for row in rows], dtype=bool)[back]

    def rested(self, u: Array, there: Mask) -> Array:  # (m, d) -> (m, d)
        return np.where(there, u, self.rest)

    def transformed(self, columns: Array, there: Mask) -> Array:  # (m, D) -> (m, D)
        return np.where(np.repeat(there, self._widths, axis=1), columns, self._rest_columns)

    @cached_property
    def order(self) -> list[int]:  # -> (d,)
        """All parameters, those that decide before those that they decide on."""
        return [i for i in range(len(self.axes)) if i not in self.formulas] + list(self.formulas)

    @cached_property
    def rest(self) -> Array:  # -> (d,)
        return np.array([axis.snap(np.array([0.5]))[0] for axis in self.axes])

    @cached_property
    def cardinality(self) -> int | None:
        """None when there are too many to count them one by one."""
        if math.prod(self._levels[self._deciding].tolist()) > MOST_COUNTED:
            return None
        _, there = self._decided
        found = float(np.where(there, self._levels, 1.0)[:, self._free].prod(axis=1).sum())
        return int(found) if math.isfinite(found) else None

    def grid(self) -> Array:  # -> (N, d)
        """Every configuration of finite axes once, last parameter fastest."""
        decided, there = self._decided
        first, kind = _distinct(list(there[:, self._free].T)) if self._free else (np.zeros(1, int), np.zeros(1, int))
        parts = []
        for k, n in enumerate(first):
            rows = decided[kind == k] if self._free else decided
            free = [i for i in self._free if there[n, i]]
            places = product([centres(self.axes[i]) for i in free])
            points = np.repeat(rows, len(places), axis=0)
            points[:, free] = np.tile(places, (len(rows), 1))
            parts.append(points)
        points = np.concatenate(parts)
        return points[np.lexsort(points.T[::-1])]

    @cached_property
    def _decided(self) -> tuple[Array, Mask]:  # (k, d), (k, d)
        """All that the deciding parameters of a finite space can be, each once; the others rest."""
        places = product([centres(self.axes[i]) for i in self._deciding])
        u = np.tile(self.rest, (len(places), 1))
        u[:, self._deciding] = places
        u = np.unique(self.rested(u, self.there(u)), axis=0)
        return u, self.there(u)

    @cached_property
    def _levels(self) -> Array:  # -> (d,)
        return np.array([axis.levels or math.inf for axis in self.axes])

    @cached_property
    def _free(self) -> list[int]:
        return [i for i in range(len(self.axes)) if i not in self._deciding]

    @cached_property
    def _deciding(self) -> list[int]:
        return sorted({self.names.index(name) for formula in self.formulas.values() for name in formula.names})

    @cached_property
    def _widths(self) -> list[int]:
        return [axis.width for axis in self.axes]

    @cached_property
    def _rest_columns(self) -> Array:  # -> (D,)
        pairs = zip(self.axes, self.rest, strict=True)
        return np.concatenate([_average(axis) if axis.width > 1 else axis.transform(u[None])[0] for axis, u in pairs])

    def _cells(self, i: int, u: Array, known: Mask) -> Array:  # (m,) -> (m,)
        cells = np.full(len(u), -1.0)
        cells[known] = self.axes[i].snap(u[known])
        return cells

    def _holds(self, formula: Formula, row: Mapping[int, float]) -> bool:
        try:
            return formula.holds({self.names[i]: self.axes[i].decode(float(u)) for i, u in row.items()})
        except Absent:
            return False


def count_of(axes: Sequence[Axis], conditions: Conditions | None) -> int | None:
    """Number of configurations, None when a parameter is continuous. When too many to be counted one by one, as if all
    parameters always existed."""
    counted = None if conditions is None else conditions.cardinality
    levels = [axis.levels for axis in axes]
    return counted if counted is not None or None in levels else math.prod(n for n in levels if n is not None)


def conditions_of(names: Sequence[str], axes: Sequence[Axis], texts: Mapping[str, str]) -> Conditions:
    """What is wrong with them is an error that names the parameter."""
    formulas: dict[str, Formula] = {}
    for name, text in texts.items():
        if name not in names:
            raise InputError(f"there is a condition for {brief(name)}, which is no parameter; there are {list(names)}")
        try:
            formulas[name] = parse(text, names)
            _check_values(formulas[name], dict(zip(names, axes, strict=True)))
        except InputError as error:
            raise InputError(f"the condition of {name!r}: {error}") from None
    order = [name for name in _order(formulas) if name in formulas]
    found = Conditions(tuple(names), tuple(axes), {names.index(name): formulas[name] for name in order})
    _check_reachable(found)
    return found


def _order(formulas: Mapping[str, Formula]) -> list[str]:
    """Those that decide before those that they decide on."""
    try:
        return list(TopologicalSorter({name: formula.names for name, formula in formulas.items()}).static_order())
    except CycleError as error:
        circle = " depends on ".join(map(repr, reversed(error.args[1])))
        raise InputError(f"conditions must not go in a circle: {circle}") from None


def _check_values(formula: Formula, axes: Mapping[str, Axis]) -> None:
    """A choice that is misspelt would never be met."""
    for node in ast.walk(formula.tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = [axes[formula.name(side)] for side in sides if isinstance(side, ast.Name)]
            values = [part.value for side in sides for part in _items(side) if isinstance(part, ast.Constant)]
            for axis in named:
                choices = axis.choices if isinstance(axis, Nominal | Ordinal) else None
                for value in values:
                    if choices is not None and isinstance(value, str) and not any(equal(value, c) for c in choices):
                        raise InputError(f"{brief(formula.text)}: {brief(value)} is none of {brief(list(choices))}")


def _items(side: ast.expr) -> Sequence[ast.expr]:
    return side.elts if isinstance(side, ast.List | ast.Tuple) else [side]


def _check_reachable(conditions: Conditions) -> None:
    """Every parameter exists somewhere, and every condition can be decided."""
    deciding = conditions._deciding
    if math.prod(conditions._levels[deciding].tolist()) <= MOST_LOOKED_AT:
        places = product([centres(conditions.axes[i]) for i in deciding])
    else:  # the ends among them
        draws = np.random.default_rng(0).random((MOST_LOOKED_AT, len(deciding)))
        places = np.clip(1.2 * draws - 0.1, 0.0, 1.0)
    u = np.tile(conditions.rest, (len(places), 1))
    u[:, deciding] = places
    try:
        there = conditions.there(u)
    except InputError as error:
        raise InputError(f"a condition cannot be decided: {error}") from None
    for i, formula in conditions.formulas.items():
        if not there[:, i].any():
            raise InputError(
                f"{conditions.names[i]!r} would never exist: its condition {brief(formula.text)} holds for no "
                "configuration; change the condition, or leave the parameter out"
            )


def product(columns: Sequence[Array]) -> Array:  # k of (n_i,) each -> (n_1 ... n_k, k)
    """All combinations, last column fastest."""
    if not columns:
        return np.zeros((1, 0))
    return np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, len(columns))


def _average(axis: Axis) -> Array:
    return np.full(axis.width, 1.0 / axis.width)


def _distinct(columns: Sequence[npt.NDArray[Any]]) -> tuple[Rows, Rows]:  # of (m,) each -> (k,), (m,)
    """The first row of each kind, and the kind of each row. Much faster than unique rows of a matrix."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + place, return_inverse=True)
    _, first, back = np.unique(code, return_index=True, return_inverse=True)
    return first, back


def record(texts: Mapping[str, str], distributions: Mapping[str, Any]) -> dict[str, str]:
    """The conditions in the order of the parameters."""
    return {name: texts[name].strip() for name in distributions if name in texts}
