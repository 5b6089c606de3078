"""Cells of some rows -> numbers, and which rows cannot be used and why.

Notation
    rows    n, one per old run
    u       (n, d) configurations in [0, 1], see space/space.py
    y       (n,)   objective, as the table has it
    code    (n,)   index of each row's task, or of its fault

A row that cannot be used is counted once, for the first column at fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from jumbo_bo.data.frames import Source, as_text
from jumbo_bo.errors import brief
from jumbo_bo.extras import later
from jumbo_bo.space.axes import Array, Axis, Continuous
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import as_numbers

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LARGEST = 1e100  # an objective beyond this is a diverged run; its square must stay finite
NO_TASK = "(no task)"  # rows whose task cell is empty


class Faults:
    """Which rows cannot be used and why; the first fault of a row counts."""

    def __init__(self, rows: pl.DataFrame, number: Codes, source: Source) -> None:
        self.rows, self.number, self.source = rows, number, source
        self.code: Codes = np.zeros(rows.height, dtype=np.int64)  # 0: usable, i: reasons[i - 1]
        # Column, what is wrong with it, what was expected: all that can be, so that codes mean the same in any rows.
        self.reasons: list[tuple[str, str, str]] = []

    def add(self, bad: Mask, column: str, wrong: str, expected: str) -> None:
        self.reasons.append((column, wrong, expected))
        if bad.any():
            self.code[bad & (self.code == 0)] = len(self.reasons)

    def reason(self, code: int) -> str:
        column, wrong, _ = self.reasons[code - 1]
        return f"{column} is {wrong}"

    def example(self, i: int) -> str:
        column, wrong, expected = self.reasons[self.code[i] - 1]
        value = self.rows.row(i, named=True)[column]
        found = wrong if value is None else brief(value, 40)
        where = self.source.place(int(self.number[i]))
        return f"{self.source.name} {where}: {column!r} is {found}, expected {expected}"


def task_codes(values: pl.Series, names: dict[str, int]) -> Codes:
    """For each row the index of its task in `names`, which grows."""
    code = _by_distinct(values, lambda cells: np.array([names.setdefault(str(c), len(names)) for c in cells]))
    if values.null_count():
        code[values.is_null().to_numpy()] = names.setdefault(NO_TASK, len(names))
    return code.astype(np.int64)


def objective(values: pl.Series, faults: Faults) -> Array:  # -> (n,)
    y = _numbers(values, as_numbers)
    faults.add(values.is_null().to_numpy(), values.name, "empty or NaN", "a finite number")
    faults.add(np.isnan(y), values.name, "not a number", "a finite number")
    faults.add(np.abs(y) > LARGEST, values.name, "not finite", "a finite number")
    return y


def parameter(
    values: pl.Series, axis: Axis, dist: BaseDistribution, faults: Faults, there: Mask | bool = True
) -> Array:  # -> (n,)
    """Where the parameter is not `there`, whatever the cell holds is no fault."""
    empty = values.is_null().to_numpy()
    if isinstance(dist, CategoricalDistribution):
        u, wrong = _by_distinct(values, axis.encode), "an unknown category"
        if None in dist.choices:
            u[empty] = axis.encode([None])[0]  # an empty cell spells the choice None
            empty = np.zeros_like(empty)
    else:
        u = _numbers(values, axis.encode)
        wrong = "not a number" if isinstance(dist, FloatDistribution) and dist.step is None else "not an allowed value"
    faults.add(empty & there, values.name, "empty", axis.describe())
    faults.add(np.isnan(u) & there, values.name, wrong, axis.describe())
    faults.add(np.isinf(u) & there, values.name, "out of range", axis.describe())
    return u


def plain(rows: pl.DataFrame, space: Space, task: str | None, result: str) -> tuple[Mask, Array]:  # -> (n,), y
    """Rows without a fault, and their y (anything in other rows). Far cheaper than encoding them; a row that is good
    but odd (text that spells a number with a blank after it) may be missing."""
    number = pl.col(result).cast(pl.Float64, strict=False)
    sound = [number.is_between(-LARGEST, LARGEST) if _spells_numbers(rows[result]) else pl.lit(False)]
    if task is not None:
        sound.append(pl.col(task).is_not_null())
    for name, axis in zip(space.names, space.axes, strict=True):
        if name in rows.columns:
            sound.append(_sound(rows[name], axis, space.distributions[name]))
    good, y = rows.select(pl.all_horizontal(sound).fill_null(False).alias("good"), number.alias("y"))
    return good.to_numpy(), y.to_numpy()


def without_nan(rows: pl.DataFrame) -> pl.DataFrame:
    """pandas writes NaN for an empty cell."""
    return rows.fill_nan(None)


def _sound(values: pl.Series, axis: Axis, dist: BaseDistribution) -> pl.Expr:
    column, dtype = pl.col(values.name), values.dtype
    if isinstance(axis, Continuous) and _spells_numbers(values):
        return column.cast(pl.Float64, strict=False).is_between(axis.low, axis.high)
    if dtype.is_nested() or dtype == pl.Object:
        return pl.lit(False)
    distinct = without_nan(values.unique().to_frame())
    faults = Faults(distinct, np.zeros(len(distinct), np.int64), Source("", ""))
    parameter(distinct.to_series(), axis, dist, faults)
    good = faults.code == 0
    return pl.lit(True) if good.all() else column.is_in(distinct.to_series().filter(pl.Series(good)).implode())


def _spells_numbers(values: pl.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype == pl.String


def _numbers(values: pl.Series, encode: Callable[[Any], Array]) -> Array:  # -> (n,)
    if values.dtype.is_numeric():
        return encode(values.cast(pl.Float64).to_numpy())
    return _by_distinct(values, encode)


def _by_distinct(values: pl.Series, encode: Callable[[Any], Array]) -> Array:  # -> (n,), NaN where empty
    """Each distinct value is encoded once, so that a million rows take a fraction of a second."""
    if values.dtype.is_nested() or values.dtype == pl.Object:
        values = as_text(values.name, values.to_list())
    elif not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        values = values.cast(pl.String)
    distinct = values.drop_nulls().unique(maintain_order=True)
    if distinct.is_empty():
        return np.full(len(values), np.nan)
    codes = pl.Series(encode(distinct.to_list()), dtype=pl.Float64)
    mapped = values.replace_strict(distinct, codes, default=None, return_dtype=pl.Float64)
    return np.array(mapped.to_numpy())
