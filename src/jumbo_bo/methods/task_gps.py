"""One GP per old task, fitted once: what `rgpe` and `mf-gp-ucb` know of the old runs.

Notation
    K           old tasks
    t           (m, D) points T(u)
    old_mean    (m, K) posterior mean of each old task's GP, in that task's own standardised units
    old_sd      (m, K) its standard deviation

A task of more than `rows` rows is represented by its best third and a random sample of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.data.likeness import spearman
from jumbo_bo.learning.row_gp import conditioned
from jumbo_bo.models.gp import GP, Blocks, covariance, posterior

Array = npt.NDArray[np.float64]

REFERENCE = 256  # random points on which the old tasks are compared with each other


@dataclass(frozen=True)
class TaskGPs:
    names: tuple[str, ...]
    gps: tuple[GP, ...]
    agreement: Array  # (K,) average rank correlation of a task's mean with those of the others, 0 when it is alone

    def blocks(self, t: Array) -> dict[str, Array]:
        # Single precision is enough for a model of other tasks, and twice as fast.
        normals = [posterior(gp, {"x": t.astype(np.float32)}) for gp in self.gps]
        mean, sd = (np.stack(parts, axis=1).astype(float) for parts in zip(*normals, strict=True))
        return {"old_mean": mean, "old_sd": sd}


def learn_tasks(history: History, rows: int, seed: int) -> TaskGPs:
    space = history.space
    gps = [conditioned(space, task, rows, np.random.default_rng([seed, k])) for k, task in enumerate(history.tasks)]
    made = TaskGPs(tuple(task.name for task in history.tasks), tuple(gps), np.zeros(len(gps)))
    points = space.transform(space.sample(np.random.default_rng(seed), REFERENCE))
    return TaskGPs(made.names, made.gps, _agreement(made.blocks(points)["old_mean"]))


def joint(gp: GP, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> mean (m,), covariance (m, m)
    """The joint posterior at a few points."""
    k = covariance(gp.kernel, gp.theta, gp.blocks, blocks)
    v = gp.root @ k
    return gp.alpha @ k, covariance(gp.kernel, gp.theta, blocks, blocks) - v.T @ v


def _agreement(mean: Array) -> Array:  # (m, K) -> (K,)
    columns = range(mean.shape[1])
    rho = [[spearman(mean[:, i], mean[:, j]) for j in columns if j != i] for i in columns]
    return np.array([np.mean(np.nan_to_num(row)) if row else 0.0 for row in rho])
