"""A table with one row per old run: what its columns are, and how any kind of table becomes one of Polars."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from jumbo_bo.data.summary import Dropped
from jumbo_bo.errors import InputError, brief
from jumbo_bo.extras import later
from jumbo_bo.space.space import Array, Space
from jumbo_bo.space.values import spelled

if TYPE_CHECKING:
    import polars as pl

    Frame = pl.DataFrame | pl.LazyFrame
else:
    pl, Frame = later("polars"), Any  # a slow import, and with a cached net nobody needs it


class Roles(TypedDict, total=False):
    """What the columns of a table are, as keywords; see `Columns`."""

    task: str | None
    objective: str
    target: Any
    rename: Mapping[str, str] | None
    fill: Mapping[str, Any] | None
    on_bad_rows: Literal["skip", "error"]
    most_rows: int | None


class Options(Roles, total=False):
    direction: Literal["minimize", "maximize"] | Mapping[str, Literal["minimize", "maximize"]]  # several: see goals.py
    limits: Sequence[str]


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
    most_rows: int | None = None  # kept in memory, see stream.py; of more, a random sample of each task
    limits: Sequence[str] = ()  # columns of quantities that are limited, see limits.py

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Columns:
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                raise TypeError(f"unknown option {name!r}{closest(name, known)}; the options are {known}")
        return cls(**_of_several(options))

    def __post_init__(self) -> None:
        check_direction(self.direction)
        if self.on_bad_rows not in ("skip", "error"):
            raise InputError(f'on_bad_rows is {self.on_bad_rows!r}, expected "skip" or "error"')
        if self.most_rows is not None and (not isinstance(self.most_rows, int) or self.most_rows < 1):
            raise InputError(f"most_rows is {self.most_rows!r}, expected a whole number of at least 1")
        if isinstance(self.limits, str) or not all(isinstance(name, str) for name in self.limits):
            raise InputError(f'limits are {self.limits!r}, expected a list of columns such as ["latency_ms"]')


def _of_several(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Several goals: the first one is the objective, the others are read like quantities with limits."""
    if not isinstance(options.get("direction"), Mapping):
        return options
    if "objective" in options:
        raise InputError("several goals name their columns; leave out objective=, or give one direction")
    (first, direction), *others = options["direction"].items()
    names = [name for name, _ in others]
    limits = [*names, *(name for name in options.get("limits", ()) if name not in names)]
    return {**options, "objective": first, "direction": direction, "limits": limits}


@dataclass(frozen=True)
class Source:
    """Where rows come from, in the words of an error message."""

    name: str
    task: str  # name of the task when no column names it
    place: Callable[[int], str] = "row {}".format  # index of a row -> where a person finds it
    skipped: tuple[Dropped, ...] = ()  # rows left out before they became a frame
    failed: tuple[Array, ...] = ()  # (d,) each: configurations among them that failed


def chosen(frame: Frame, space: Space, columns: Columns, source: Source) -> tuple[Frame, list[str], tuple[str, ...]]:
    """The frame with its columns renamed, those that are read, and the others."""
    frame = _renamed(frame, columns.rename or {}, source)
    found = frame.collect_schema().names()
    used = _used_columns(found, space, columns, source)
    return frame.select(used), used, tuple(c for c in found if c not in used)


def has_column(frame: Frame, columns: Columns, name: str) -> bool:
    """Once its columns are renamed."""
    rename = columns.rename or {}
    return any(rename.get(column, column) == name for column in frame.collect_schema().names())


def to_polars(frame: Any) -> Frame:
    """Polars, pandas and Arrow tables alike; pandas and pyarrow are never imported, only their objects used."""
    if isinstance(frame, pl.LazyFrame | pl.DataFrame):
        return frame
    if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
        names = [str(c) for c in frame.columns]
        if len(set(names)) < len(names):
            raise InputError(f"the pandas frame has duplicate columns: {names}")
        return pl.DataFrame([_pandas_column(name, frame.iloc[:, i]) for i, name in enumerate(names)])
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        table = pl.from_arrow(frame)
        if isinstance(table, pl.DataFrame):
            return table
    raise TypeError(f"expected a Polars, pandas or Arrow table, got {type(frame).__name__}; for files use read_history")


def text_or_typed(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of Python values; mixed types become text, which the space reads back. So do numbers beyond 64 bits, and
    lists and mappings, as Polars may take for ever to find out what is in them."""
    if any(isinstance(v, list | tuple | dict) or (isinstance(v, int) and abs(v) >= 2**63) for v in values):
        return as_text(name, values)
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError):
        return as_text(name, values)


def closest(name: Any, known: Iterable[str], form: str = "; did you mean {!r}?") -> str:
    close = difflib.get_close_matches(spelled(name)[:100], list(known), n=1, cutoff=0.5)
    return form.format(close[0]) if close else ""


def check_direction(direction: str) -> None:
    if direction not in ("minimize", "maximize"):
        raise InputError(f'direction is {direction!r}, expected "minimize" or "maximize"')


def _renamed(frame: Frame, rename: Mapping[str, str], source: Source) -> Frame:
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
            raise InputError(f"fill sets {name!r} to {brief(value)}, expected {axis.describe()}")
    present = [name for name in space.names if name in found]
    if not present:
        other = next((c for c in found if c not in roles.values()), "column")
        raise InputError(
            f"{source.name}: none of the parameters {list(space.names)} is a column; it has {found}. "
            f"Map its columns with rename={{{other!r}: {space.names[0]!r}, ...}}"
        )
    return [*present, *roles.values()]


def _pandas_column(name: str, values: Any) -> pl.Series:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return pl.Series(name, values.to_numpy())
    # Through Python values: works for mixed columns and without pyarrow.
    pairs = zip(values.tolist(), values.isna().tolist(), strict=True)
    return text_or_typed(name, [None if empty else v for v, empty in pairs])


def as_text(name: str, values: Sequence[Any]) -> pl.Series:
    return pl.Series(name, [None if v is None else spelled(v) for v in values], dtype=pl.String)
