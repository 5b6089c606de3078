"""A table with one row per old run -> each task's numbers, and a report of what could not be used.

Notation
    rows    n, one per old run
    u       (n, d) configurations in [0, 1], see space/space.py
    y       (n,)   objective, larger is better; the direction is flipped here and nowhere later
    code    (n,)   index of each row's task, or of its fault

A row that cannot be used is dropped and counted once, for the first column at fault.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from jumbo_bo.data.summary import Dropped, Report, clip
from jumbo_bo.errors import InputError
from jumbo_bo.extras import later
from jumbo_bo.space.axes import Array, Axis, as_numbers
from jumbo_bo.space.space import Space

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

Codes = npt.NDArray[np.int64]

LARGEST = 1e100  # an objective beyond this is a diverged run; its square must stay finite
NO_TASK = "(no task)"  # rows whose task cell is empty


@dataclass(frozen=True)
class Columns:
    """Which column is what, and what to do with rows and parameters that do not fit."""

    task: str | None = None  # column that names the task; None: all rows are one task, named after the source
    objective: str = "value"
    direction: str = "minimize"
    target: Any = None  # the task that is the new problem itself
    rename: Mapping[str, str] | None = None  # column -> parameter
    fill: Mapping[str, Any] | None = None  # parameter -> its value in rows made before it existed
    on_bad_rows: str = "skip"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Columns:
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                raise TypeError(f"unknown option {name!r}{closest(name, known)}; the options are {known}")
        return cls(**options)

    def __post_init__(self) -> None:
        check_direction(self.direction)
        if self.on_bad_rows not in ("skip", "error"):
            raise InputError(f'on_bad_rows is {self.on_bad_rows!r}, expected "skip" or "error"')


@dataclass(frozen=True)
class Source:
    """Where rows come from, in the words of an error message."""

    name: str
    task: str  # name of the task when no column names it
    place: Callable[[int], str] = "row {}".format  # index of a row -> where a person finds it
    skipped: tuple[Dropped, ...] = ()  # rows left out before they became a frame
    failed: tuple[Array, ...] = ()  # (d,) each: configurations among them that failed


def parse(
    frame: pl.LazyFrame, space: Space, columns: Columns, source: Source
) -> tuple[dict[str, tuple[Array, ...]], Report]:
    """Usable rows, task -> (u, y, failed), and how the source was read. No usable row is not an error here: other
    sources may have some. A row without a value is a run that failed; of a task that has no others nothing is kept."""
    frame = _renamed(frame, columns.rename or {}, source)
    found = frame.collect_schema().names()
    used = _used_columns(found, space, columns, source)
    extra = tuple(c for c in found if c not in used)
    rows = frame.select(used).collect().fill_nan(None)  # pandas writes NaN for an empty cell
    faults = _Faults(rows, source)

    names, code = _task_codes(rows, columns.task, faults)
    named = faults.code == 0
    y = _objective(rows[columns.objective], faults) * (-1.0 if columns.direction == "minimize" else 1.0)
    failed = named & (faults.code > 0)
    u, missing, fill = np.empty((rows.height, space.d)), {}, columns.fill or {}
    for i, (name, axis) in enumerate(zip(space.names, space.axes, strict=True)):
        if name in used:
            u[:, i] = _parameter(rows[name], axis, space.distributions[name], faults)
            continue
        if name in fill:
            u[:, i], how = axis.encode([fill[name]])[0], repr(fill[name])
        else:
            # Noise, so that the net learns to ignore the parameter; a constant would pull suggestions towards it.
            # Another for each source: late rows are often the better ones, and must not share their noise.
            noise = np.random.default_rng([crc32(source.task.encode()), i]).random(rows.height)
            u[:, i], how = axis.snap(noise), "random values"
        missing[name] = f"filled with {how}{closest(name, extra, ' (closest column: {!r})')}"

    ok = faults.code == 0
    if columns.on_bad_rows == "error" and not ok.all():
        raise InputError(f'{faults.example(int(np.argmin(ok)))}; drop the row or pass on_bad_rows="skip"')
    read = dict(zip(names, np.bincount(code, minlength=len(names)).tolist(), strict=True))
    dropped = faults.by_task(names, code)
    if source.skipped:
        read[source.task] += sum(d.count for d in source.skipped)
        dropped[source.task] = (*source.skipped, *dropped.get(source.task, ()))
    report = Report(source.name, columns.direction, read, dropped, missing, extra)
    failed &= np.isfinite(u).all(axis=1)
    lost = {name: points for name, (points,) in _by_task(names, code[failed], u[failed]).items()}
    if source.failed:
        lost[source.task] = np.vstack([lost.get(source.task, u[:0]), *source.failed])
    values = _by_task(names, code[ok], u[ok], y[ok])
    return {name: (*arrays, lost.get(name, u[:0])) for name, arrays in values.items()}, report


def to_polars(frame: Any) -> pl.LazyFrame:
    """Polars, pandas and Arrow tables alike; pandas and pyarrow are never imported, only their objects used."""
    if isinstance(frame, pl.LazyFrame | pl.DataFrame):
        return frame.lazy()
    if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
        names = [str(c) for c in frame.columns]
        if len(set(names)) < len(names):
            raise InputError(f"the pandas frame has duplicate columns: {names}")
        return pl.LazyFrame([_pandas_column(name, frame.iloc[:, i]) for i, name in enumerate(names)])
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        table = pl.from_arrow(frame)
        if isinstance(table, pl.DataFrame):
            return table.lazy()
    raise TypeError(f"expected a Polars, pandas or Arrow table, got {type(frame).__name__}; for files use read_history")


def text_or_typed(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of Python values; mixed types become text, which the space reads back."""
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return _text(name, values)


def closest(name: Any, known: Iterable[str], form: str = "; did you mean {!r}?") -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return form.format(close[0]) if close else ""


def check_direction(direction: str) -> None:
    if direction not in ("minimize", "maximize"):
        raise InputError(f'direction is {direction!r}, expected "minimize" or "maximize"')


class _Faults:
    """Which rows cannot be used and why; the first fault of a row counts."""

    def __init__(self, rows: pl.DataFrame, source: Source) -> None:
        self.rows, self.source = rows, source
        self.code: Codes = np.zeros(rows.height, dtype=np.int64)  # 0: usable, i: reasons[i - 1]
        self.reasons: list[tuple[str, str, str]] = []  # column, what is wrong with it, what was expected

    def add(self, bad: npt.NDArray[np.bool_], column: str, wrong: str, expected: str) -> None:
        fresh = bad & (self.code == 0)
        if fresh.any():
            self.reasons.append((column, wrong, expected))
            self.code[fresh] = len(self.reasons)

    def example(self, i: int) -> str:
        column, wrong, expected = self.reasons[self.code[i] - 1]
        value = self.rows.row(i, named=True)[column]
        found = wrong if value is None else clip(repr(value), 40)
        return f"{self.source.name} {self.source.place(i)}: {column!r} is {found}, expected {expected}"

    def by_task(self, names: Sequence[str], task: Codes) -> dict[str, tuple[Dropped, ...]]:
        bad, base = np.flatnonzero(self.code), len(self.reasons) + 1
        pairs, first, count = np.unique(task[bad] * base + self.code[bad], return_index=True, return_counts=True)
        out: dict[str, tuple[Dropped, ...]] = {}
        for pair, f, n in zip(pairs, first, count, strict=True):
            column, wrong, _ = self.reasons[pair % base - 1]
            drop = Dropped(f"{column} is {wrong}", int(n), self.example(int(bad[f])))
            out[names[pair // base]] = (*out.get(names[pair // base], ()), drop)
        return out


def _renamed(frame: pl.LazyFrame, rename: Mapping[str, str], source: Source) -> pl.LazyFrame:
    found = frame.collect_schema().names()
    for old, new in rename.items():
        if old in found and new in found:
            raise InputError(f"{source.name}: rename maps {old!r} to {new!r}, but it has both columns")
        if old not in found and new not in found:
            raise InputError(f"{source.name}: rename={{{old!r}: {new!r}}}, but it has no such column; it has {found}")
    return frame.rename({old: new for old, new in rename.items() if old in found})


def _used_columns(found: list[str], space: Space, columns: Columns, source: Source) -> list[str]:
    roles = {"objective": columns.objective} | ({} if columns.task is None else {"task": columns.task})
    for role, name in roles.items():
        if name not in found:
            hint = closest(name, found)
            raise InputError(f"{source.name} has no column {name!r}{hint}; pass {role}= one of {found}")
        if name in space.names:
            raise InputError(f"{role}={name!r} is also a parameter of the space; it cannot be both")
    for name, value in (columns.fill or {}).items():
        if name not in space.names:
            raise InputError(f"fill names {name!r}{closest(name, space.names)}; the parameters are {list(space.names)}")
        axis = space.axes[space.names.index(name)]
        if not np.isfinite(axis.encode([value])[0]):
            raise InputError(f"fill sets {name!r} to {value!r}, expected {axis.describe()}")
    present = [name for name in space.names if name in found]
    if not present:
        other = next((c for c in found if c not in roles.values()), "column")
        raise InputError(
            f"{source.name}: none of the parameters {list(space.names)} is a column; it has {found}. "
            f"Map its columns with rename={{{other!r}: {space.names[0]!r}, ...}}"
        )
    return [*present, *roles.values()]


def _task_codes(rows: pl.DataFrame, column: str | None, faults: _Faults) -> tuple[list[str], Codes]:
    """Task names, and for each row the index of its name."""
    if column is None:
        return [faults.source.task], np.zeros(rows.height, dtype=np.int64)
    names: dict[str, int] = {}
    code = _by_distinct(rows[column], lambda cells: np.array([names.setdefault(str(c), len(names)) for c in cells]))
    empty = rows[column].is_null().to_numpy()
    faults.add(empty, column, "empty", "the name of a task")
    if empty.any():
        code[empty] = names.setdefault(NO_TASK, len(names))
    return list(names), code.astype(np.int64)


def _objective(values: pl.Series, faults: _Faults) -> Array:  # -> (n,)
    y = _numbers(values, as_numbers)
    faults.add(values.is_null().to_numpy(), values.name, "empty or NaN", "a finite number")
    faults.add(np.isnan(y), values.name, "not a number", "a finite number")
    faults.add(np.abs(y) > LARGEST, values.name, "not finite", "a finite number")
    return y


def _parameter(values: pl.Series, axis: Axis, dist: BaseDistribution, faults: _Faults) -> Array:  # -> (n,)
    empty = values.is_null().to_numpy()
    if isinstance(dist, CategoricalDistribution):
        u, wrong = _by_distinct(values, axis.encode), "an unknown category"
        if None in dist.choices:
            u[empty] = axis.encode([None])[0]  # an empty cell spells the choice None
            empty = np.zeros_like(empty)
    else:
        u = _numbers(values, axis.encode)
        wrong = "not a number" if isinstance(dist, FloatDistribution) and dist.step is None else "not an allowed value"
    faults.add(empty, values.name, "empty", axis.describe())
    faults.add(np.isnan(u), values.name, wrong, axis.describe())
    faults.add(np.isinf(u), values.name, "out of range", axis.describe())
    return u


def _numbers(values: pl.Series, encode: Callable[[Any], Array]) -> Array:  # -> (n,)
    if values.dtype.is_numeric():
        return encode(values.cast(pl.Float64).to_numpy())
    return _by_distinct(values, encode)


def _by_distinct(values: pl.Series, encode: Callable[[Any], Array]) -> Array:  # -> (n,), NaN where empty
    """Each distinct value is encoded once, so that a million rows take a fraction of a second."""
    if values.dtype.is_nested() or values.dtype == pl.Object:
        values = _text(values.name, values.to_list())
    elif not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        values = values.cast(pl.String)
    distinct = values.drop_nulls().unique(maintain_order=True)
    if distinct.is_empty():
        return np.full(len(values), np.nan)
    codes = pl.Series(encode(distinct.to_list()), dtype=pl.Float64)
    mapped = values.replace_strict(distinct, codes, default=None, return_dtype=pl.Float64)
    return np.array(mapped.to_numpy())


def _by_task(names: Sequence[str], code: Codes, *arrays: Array) -> dict[str, tuple[Array, ...]]:
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(len(names) + 1))
    parts = {name: order[a:b] for name, a, b in zip(names, ends[:-1], ends[1:], strict=True) if b > a}
    return {name: tuple(array[rows] for array in arrays) for name, rows in parts.items()}


def _pandas_column(name: str, values: Any) -> pl.Series:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return pl.Series(name, values.to_numpy())
    # Through Python values: works for mixed columns and without pyarrow.
    pairs = zip(values.tolist(), values.isna().tolist(), strict=True)
    return text_or_typed(name, [None if empty else v for v, empty in pairs])


def _text(name: str, values: Sequence[Any]) -> pl.Series:
    return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
