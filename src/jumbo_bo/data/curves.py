"""Learning curves of old runs: from Optuna studies with intermediate values, and from long tables.

Notation
    at      (m,)    how far the run had come at each value, in (0, 1], increasing; 1 is its last step
    values  (m,)    larger is better; the direction is flipped here and nowhere later
    end     ()      the final value, larger is better
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import optuna
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import corrections_in
from jumbo_bo.data.files import PathLike, files_of, readable, scan, task_names
from jumbo_bo.data.frames import check_direction, closest, to_polars
from jumbo_bo.data.warp import PRIOR_WEIGHT, Warp, fit_warp
from jumbo_bo.errors import InputError
from jumbo_bo.extras import later

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and pruners of old studies do not need it

Array = npt.NDArray[np.float64]


class Curve(NamedTuple):
    at: Array
    values: Array
    end: float

    def within(self, warp: Warp) -> Curve:
        """In the units of its problem."""
        return Curve(self.at, warp(self.values), float(warp(np.array(self.end))))


class Steps(NamedTuple):
    """How steps are counted: the first one, how far the next one is, the last one."""

    first: float
    gap: float
    last: float

    def at(self, steps: Array) -> Array:
        return (steps - self.first + self.gap) / (self.last - self.first + self.gap)


def units(ends: Array, like: Sequence[Warp] = ()) -> Warp:
    """The units of a problem with these final values: the best is 0, the median -1. With few values, the scale is
    pulled towards that of the old problems. A standard deviation would be that of the worst half, and would leave no
    difference between the good ones."""
    usual = fit_warp(ends, like)
    r = replace(usual, centre=0.0, scale=1.0).straighten(ends)
    best, alike = float(r.max()), [w.scale for w in like if w.sign == usual.sign]
    spread = best - float(np.median(r))
    if spread <= 1e-12 * max(1.0, abs(best)):
        return Warp(usual.sign, best, float(np.median(alike)) if alike else usual.scale)
    if alike:
        n, prior = len(r), float(np.median(alike))
        spread = math.sqrt((PRIOR_WEIGHT * prior**2 + (n - 1) * spread**2) / (PRIOR_WEIGHT + n - 1))
    return Warp(usual.sign, best, spread)


@dataclass(frozen=True, eq=False)
class Curves:
    """Of old runs, by problem."""

    tasks: Mapping[str, tuple[Curve, ...]]

    def __len__(self) -> int:
        return sum(map(len, self.tasks.values()))

    def __repr__(self) -> str:
        return f"Curves({', '.join(f'{name!r}: {len(curves)}' for name, curves in self.tasks.items())})"


def from_studies(studies: Iterable[optuna.Study]) -> Curves:
    """The complete trials that reported intermediate values. Pruned ones have no final value."""
    tasks: dict[str, tuple[Curve, ...]] = {}
    for study in studies:
        if len(study.directions) > 1:
            raise InputError(f"study {study.study_name!r} has {len(study.directions)} objectives, expected one")
        trials = corrections_in(study.user_attrs).counting(study.get_trials(deepcopy=False))
        sign = sign_of(study)
        found = tuple(c for t in trials if (c := curve_of(t, sign)) is not None)
        name = study.study_name if study.study_name not in tasks else f"{study.study_name} #{len(tasks) + 1}"
        if found:
            tasks[name] = found
    return Curves(tasks)


def sign_of(study: optuna.Study) -> int:
    return 1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else -1


def curve_of(trial: FrozenTrial, sign: int, steps: Steps | None = None) -> Curve | None:
    """None where a final value or all intermediate ones are missing. `steps` None: its own."""
    if trial.state != TrialState.COMPLETE or trial.value is None:
        return None
    step, values = finite(trial.intermediate_values)
    if not len(step) or not np.isfinite(trial.value):
        return None
    steps = steps or steps_of(step)
    return Curve(steps.at(step), sign * values, sign * float(trial.value))


def finite(values: Mapping[int, float]) -> tuple[Array, Array]:
    """Steps and values in order, without those that are no numbers."""
    pairs = sorted((step, value) for step, value in values.items() if np.isfinite(value))
    found = np.array(pairs, dtype=float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def steps_of(step: Array) -> Steps:
    """Of one run. The first step may be 0, 1, or as far as the others are apart."""
    gap = float(np.median(np.diff(step))) if len(step) > 1 else 1.0
    return Steps(float(step[0]), gap, float(step[-1]))


def read_curves(
    source: PathLike | Iterable[PathLike] | Any,
    *,
    run: str,
    step: str,
    value: str,
    task: str | None = None,
    direction: str = "minimize",
) -> Curves:
    """From a long table, one row per run and step: a file, a glob, a list of both, or a data frame.

    run         column that says which run a row belongs to; runs of different tasks may have the same name
    step        column with the step, such as the epoch
    value       column with the value after it; the last one of a run is its final value
    task        column that names the problem; None: each file is one
    """
    check_direction(direction)
    sign = -1 if direction == "minimize" else 1
    columns = {"run": run, "step": step, "value": value, **({} if task is None else {"task": task})}
    tasks: dict[str, tuple[Curve, ...]] = {}
    for name, rows in _tables(source, columns):
        for key, part in rows.group_by("task") if task else [((name,), rows)]:
            found = tuple(_curves(part, sign))
            if found:
                tasks[str(key[0])] = (*tasks.get(str(key[0]), ()), *found)
    if not tasks:
        raise InputError(f"no row has a run, a step and a finite {value!r}; a curve needs at least one of its values")
    return Curves(dict(sorted(tasks.items())))


def _tables(source: Any, columns: Mapping[str, str]) -> Iterable[tuple[str, pl.DataFrame]]:
    if hasattr(source, "columns") or hasattr(source, "__arrow_c_stream__"):
        yield "old runs", _chosen(to_polars(source).lazy().collect(), columns, "the table")
        return
    files = files_of(source)
    for file, name in zip(files, task_names(files), strict=True):
        with readable(file):
            yield name, _chosen(scan(file).lazy().collect(), columns, str(file))


def _chosen(frame: pl.DataFrame, columns: Mapping[str, str], where: str) -> pl.DataFrame:
    for role, column in columns.items():
        if column not in frame.columns:
            wide = [c for c in frame.columns if c[-1:].isdigit()]
            advice = f"; pass {role}= one of {frame.columns}"
            if len(wide) > 1:
                advice = (
                    f"; a table with one column per step ({wide[0]!r}, {wide[1]!r}, ...) has to be made long first: "
                    "one row per run and step, such as by the `unpivot` of Polars or the `melt` of pandas"
                )
            raise InputError(f"{where} has no column {column!r}{closest(column, frame.columns)}{advice}")
    rows = frame.select(pl.col(column).alias(role) for role, column in columns.items())
    rows = rows.with_columns(
        _number(rows["step"], columns["step"], where), _number(rows["value"], columns["value"], where)
    )
    return rows.filter(
        pl.all_horizontal(pl.all().is_not_null()), pl.col("value").is_finite(), pl.col("step").is_finite()
    )


def _number(column: pl.Series, name: str, where: str) -> pl.Series:
    try:
        return column.cast(pl.Float64)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: column {name!r} has values that are no numbers") from error


def _curves(rows: pl.DataFrame, sign: int) -> Sequence[Curve]:
    found = []
    for _, part in rows.unique(("run", "step"), keep="last", maintain_order=True).group_by("run", maintain_order=True):
        part = part.sort("step")
        step, values = part["step"].to_numpy(), sign * part["value"].to_numpy()
        found.append(Curve(steps_of(step).at(step), values, float(values[-1])))
    return found
