"""An exact GP on the rows of one old task. Where rows are few it predicts better than a net, above all the order of the
task's best configurations; where they are more than it can hold a net does.

Notation
    x, z    (r, D), (r,)  rows of the task: T(u) and the warped objective
    alpha   (r,)  K~^-1 z: the GP's mean at t is k(t, x) alpha
    r2      share of the variance of z that a model explains on rows it has not seen
    weight  share of the GP in the prediction of the task; the net has the rest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import Task
from jumbo_bo.models.gp import GP, build, fit, leave_one_out
from jumbo_bo.models.kernel import Term, cold_kernel, term_covariance
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

FIT_ROWS = 400  # that the hyperparameters are learned from: a likelihood costs the cube of their number
ITERATIONS = 60
TOTAL_ROWS = 8_000  # of all tasks' GPs, as a prediction asks every one of them
# Tasks; with more there are no GPs. With 450 tasks of 16 rows (made as in benchmarks/tasks.py) they raised the R2 from
# 0.36 to 0.50, and an `ask()` from 0.02 to 0.48 s.
MANY = 500
LEAST_ROWS = 10  # of a task: with fewer there is no GP
LEAST_MISS = 1e-3  # nobody is believed to explain more than all but this
LEAST_WEIGHT = 0.05  # less is not worth the time
CHUNK = 4_096  # points predicted at once


@dataclass(frozen=True, eq=False)
class RowGP:
    groups: tuple[int, ...]  # of the columns of x, see kernel.Term
    weight: float
    x: Array
    alpha: Array
    theta: Array  # of cold_kernel

    def mean(self, t: Array) -> Array:  # (m, D) -> (m,)
        """In single precision, good enough for a model of another task; around the centre it is at its best."""
        term, theta = Term("x", "matern52", self.groups), self.theta[:-1]
        x, alpha = _single(self.x - 0.5), _single(self.alpha)
        parts = [_single(t[i : i + CHUNK] - 0.5) for i in range(0, len(t), CHUNK)]
        return np.concatenate([np.zeros(0), *(alpha @ term_covariance(term, theta, x, part) for part in parts)])


def blend(heads: Array, tasks: Sequence[str], gps: Mapping[str, RowGP], t: Array) -> Array:  # (m, K), (m, D) -> (m, K)
    """The net's predictions of the tasks, and those of the GPs of some of them, averaged by weight."""
    mixed = np.array(heads, dtype=float)
    for name, gp in gps.items():
        k = tasks.index(name)
        mixed[:, k] += gp.weight * (gp.mean(t) - mixed[:, k])
    return mixed


def learn_row_gps(
    space: Space, tasks: Sequence[Task], net_r2: Sequence[float | None], rows: int, seed: int
) -> tuple[dict[str, RowGP], list[float | None]]:
    """The GPs of the tasks with at most `rows` rows, and the r2 of every task: that of the net or of the GP, the better
    one."""
    rows = min(rows, TOTAL_ROWS // len(tasks)) if len(tasks) <= MANY else 0
    gps, known = {}, list(net_r2)
    for k, (task, r2) in enumerate(zip(tasks, net_r2, strict=True)):
        if not LEAST_ROWS <= len(task.y) <= rows:
            continue
        gp = conditioned(space, task, rows, np.random.default_rng([seed, k]))
        mine = left_out_r2(gp)
        weight = share(mine, r2)
        known[k] = mine if r2 is None else max(mine, r2)
        if weight >= LEAST_WEIGHT:
            x, alpha, theta = (np.ascontiguousarray(a, dtype=float) for a in (gp.blocks["x"], gp.alpha, gp.theta))
            gps[task.name] = RowGP(space.groups, weight, x, alpha, theta)
    return gps, known


def conditioned(space: Space, task: Task, rows: int, rng: np.random.Generator) -> GP:
    """The GP of a task, or of a part of it: its best third and a random sample of the rest, together `rows` rows."""
    kernel, chosen = cold_kernel(space), best_and_others(task, rows, rng)
    x, z = space.transform(task.u[chosen]), task.z[chosen]
    some = rng.permutation(len(z))[:FIT_ROWS]
    theta = fit(kernel, {"x": x[some]}, z[some], iterations=ITERATIONS).theta
    return build(kernel, theta, {"x": x}, z)


def best_and_others(task: Task, rows: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Rows of a task, at most `rows`: the optimum is among the best, and the rest says where it is not."""
    if len(task.y) <= rows:
        return np.arange(len(task.y))
    order = np.argsort(-task.y, kind="stable")
    top = order[: rows // 3]
    return np.sort(np.concatenate([top, rng.choice(order[len(top) :], rows - len(top), replace=False)]))


def left_out_r2(gp: GP) -> float:
    """r2 when each row is predicted from the others."""
    missed, spread = float(np.mean((gp.y - leave_one_out(gp).mean) ** 2)), float(np.var(gp.y))
    return 1.0 - missed / spread if spread > 0 else 0.0


def share(gp_r2: float, net_r2: float | None) -> float:
    """Weight of the GP: by the square of what each misses, so that the much better one is nearly alone."""
    gp, net = (max(1.0 - r2, LEAST_MISS) ** 2 for r2 in (gp_r2, 0.0 if net_r2 is None else net_r2))
    return net / (net + gp)


def _single(values: Array) -> Any:
    return values.astype(np.float32)
