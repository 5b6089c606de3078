"""Problems over a complete table: a trial looks up one training seed, regret is of the mean over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import Family, table
from jumbo_bo.data.history import History, Task
from jumbo_bo.space.space import Params


def tabular(family: Family, dataset: str, history: History, unit: float = 1.0, floor: float = 0.0) -> Problem:
    """`floor`: regrets below it count as this in logarithms; at least the gap between the two best configurations,
    because no regret lies between 0 and that."""
    target = table(family, dataset)
    sign = 1.0 if family.direction == "minimize" else -1.0
    loss = sign * target.values.mean(axis=1)
    best, second = np.unique(loss)[:2]

    def objective(params: Params, rng: np.random.Generator) -> float:
        return float(target.values[target.row(params), rng.integers(family.seeds)])

    def regret(params: Params) -> float:
        return float(loss[target.row(params)] - best)

    floor = max(floor, float(second - best))
    return Problem(dataset, family.space, history, objective, regret, family.direction, unit, floor)


def old_tables(
    family: Family, datasets: Sequence[str], rows: int | None = None, rng: np.random.Generator | None = None
) -> History:
    """Whole tables as old tasks, or `rows` random configurations of each."""
    grid = family.space.grid()
    sign = -1.0 if family.direction == "minimize" else 1.0
    tasks = []
    for name in datasets:
        mean = table(family, name).values.mean(axis=1)
        kept = np.arange(len(mean))
        if rows is not None:
            kept = (rng or np.random.default_rng(0)).choice(len(mean), min(rows, len(mean)), replace=False)
        tasks.append(Task(name, grid[kept], sign * mean[kept]))
    return History(family.space, tuple(tasks), direction=family.direction)
