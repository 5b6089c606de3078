"""Problems over tables that others measured, one per task (sources.py): tune one of them with the runs of the others.

A trial looks up one row, without noise. Where a table is not a complete grid, only its rows can be chosen.

Notation
    loss    (N,) the objective of the target's table, smaller is better; for x264 the logarithm of the size
    regret  (loss - best) / (median - best): 0 is the best of the table, 1 its median
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.sources import Source
from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError, UserError
from jumbo_bo.space.space import Array, Params, Space

FLOOR = 1e-3  # regrets below it count as this: a thousandth of the way from the best to the median
FEW = 32  # integers with at most this many values are ordered choices, not a range with gaps


def problem(
    source: Source, target: str, data: Path | None, seed: int, tasks: int | None = None, rows: int | None = None
) -> Problem:
    """`tasks` of the others and `rows` of each of them, drawn by the seed; None: as many as the source says."""
    space, parts = tables(source, source.folder(data) / source.file)
    table = parts[target]
    value = _values(source, table)
    loss = value if source.direction == "minimize" else -value
    best, second = np.unique(loss)[:2]
    gap = float(np.median(loss) - best)
    if not gap > 0:
        raise UserError(f"{source.name} {target}: half of the table has the best value, so regret has no scale")
    configurations = table.select(space.names)
    row_of = {row: i for i, row in enumerate(configurations.iter_rows())}

    def row(params: Params) -> int:
        key = tuple(params[name] for name in space.names)
        if key not in row_of:
            raise InputError(f"{source.name} {target}: {params} was not measured; choose one of problem.candidates")
        return row_of[key]

    return Problem(
        target,
        space,
        _old_runs(source, target, parts, space, seed, (tasks or source.old_tasks, rows or source.rows)),
        lambda params, _: float(value[row(params)]),
        lambda params: float(loss[row(params)] - best) / gap,
        source.direction,
        floor=max(FLOOR, float(second - best) / gap),
        candidates=None if len(row_of) == space.cardinality else configurations.to_dicts(),
    )


def _old_runs(
    source: Source,
    target: str,
    parts: Mapping[str, pl.DataFrame],
    space: Space,
    seed: int,
    most: tuple[int | None, int | None],  # tasks, rows
) -> History:
    rng = np.random.default_rng([seed, 2])
    names = source.others(target)
    if most[0] is not None and most[0] < len(names):
        names = tuple(names[i] for i in np.sort(rng.choice(len(names), most[0], replace=False)))
    sign = -1.0 if source.direction == "minimize" else 1.0
    tasks = []
    for name in names:
        table = parts[name]
        if most[1] is not None and most[1] < len(table):
            table = table[np.sort(rng.choice(len(table), most[1], replace=False))]
        tasks.append(Task(name, _encoded(space, table), sign * _values(source, table)))
    return History(space, tuple(tasks), direction=source.direction)


@cache
def tables(source: Source, path: Path) -> tuple[Space, Mapping[str, pl.DataFrame]]:
    """The space of a file and the rows of each problem."""
    frame = pl.read_parquet(path)
    wanted = (*source.parameters, "task", source.objective)
    if missing := [name for name in wanted if name not in frame.columns]:
        raise UserError(f"{path} has no column {', '.join(missing)}; it has {', '.join(frame.columns)}")
    by_task = {str(task): rows for (task,), rows in frame.select(wanted).group_by("task", maintain_order=True)}
    if absent := [task for task in source.tasks.values() if task not in by_task]:
        raise UserError(f"{path} has no rows of {', '.join(absent)}; its tasks are {', '.join(sorted(by_task))}")
    space = Space({name: _distribution(frame[name], name in source.log_scaled) for name in source.parameters})
    return space, {name: by_task[task] for name, task in source.tasks.items()}


def _distribution(column: pl.Series, log: bool) -> BaseDistribution:
    values = column.unique().sort().to_list()
    if column.dtype.is_float():
        return FloatDistribution(values[0], values[-1], log=log)
    if column.dtype.is_integer() and len(values) > FEW:
        return IntDistribution(values[0], values[-1], log=log)
    return CategoricalDistribution(values)


def _encoded(space: Space, table: pl.DataFrame) -> Array:  # -> (n, d)
    columns = [axis.encode(table[name].to_list()) for name, axis in zip(space.names, space.axes, strict=True)]
    return np.stack(columns, axis=1)


def _values(source: Source, table: pl.DataFrame) -> Array:  # -> (n,)
    values: Array = table[source.objective].to_numpy()
    return np.log(values) if source.log_objective else values
