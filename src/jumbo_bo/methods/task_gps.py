"""One GP per old task, fitted once: what `rgpe`, `mf-gp-ucb`, `empirical-gp` and `scaml-gp` know of the old runs.

Notation
    K           old tasks
    t           (m, D) points T(u)
    old_mean    (m, K) posterior mean of each old task's GP, in that task's own standardised units
    old_sd      (m, K) its standard deviation

A task of more than `rows` rows is represented by its best third and a random sample of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.row_gp import conditioned
from jumbo_bo.methods.base import Recipe
from jumbo_bo.models.gp import CHUNK, GP, Blocks, Kernel, build, covariance, posterior
from jumbo_bo.models.kernel import cold_kernel

Array = npt.NDArray[np.float64]

REFERENCE = 256  # random points on which the old tasks are compared with each other


@dataclass(frozen=True, eq=False)
class TaskGPs(Past):
    kernel: Kernel  # of all
    rows: tuple[tuple[Array, Array, Array], ...]  # x (r, D), z (r,) and theta of each task
    agreement: Array  # (K,) average rank correlation of a task's mean with those of the others, 0 when it is alone

    @cached_property
    def gps(self) -> tuple[GP, ...]:
        return tuple(build(self.kernel, theta, {"x": x}, z) for x, z, theta in self.rows)

    def means(self, t: Array) -> Array:  # (m, D) -> (m, K)
        x: Any = t.astype(np.float32)  # enough for a model of other tasks, and twice as fast
        return np.stack([posterior_mean(gp, x) for gp in self.gps], axis=1).astype(float)

    def blocks(self, t: Array) -> dict[str, Array]:
        normals = [posterior(gp, {"x": t.astype(np.float32)}) for gp in self.gps]
        mean, sd = (np.stack(parts, axis=1).astype(float) for parts in zip(*normals, strict=True))
        return {"old_mean": mean, "old_sd": sd}


Kind = TypeVar("Kind", bound=TaskGPs)


class TaskGPRecipe(Recipe):
    """A method that knows the old runs by these GPs."""

    rows: int  # of an old task that its GP is conditioned on
    learns: type[TaskGPs] = TaskGPs

    @property
    def learning(self) -> Any:
        return self.rows

    def learn(self, history: History, seed: int) -> TaskGPs:
        return learn_tasks(self.learns, history, self.rows, seed)


def learn_tasks(kind: type[Kind], history: History, rows: int, seed: int) -> Kind:
    space, kernel = history.space, cold_kernel(history.space)
    gps = [conditioned(space, task, rows, np.random.default_rng([seed, k])) for k, task in enumerate(history.tasks)]
    kept = tuple((gp.blocks["x"], gp.y, gp.theta) for gp in gps)
    made = kind.of(history, kernel=kernel, rows=kept, agreement=np.zeros(len(gps)))
    points = space.transform(space.unconstrained.sample(np.random.default_rng(seed), REFERENCE))
    return replace(made, agreement=_agreement(made.means(points)))


def joint(gp: GP, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> mean (m,), covariance (m, m)
    """The joint posterior at a few points."""
    k = covariance(gp.kernel, gp.theta, gp.blocks, blocks)
    v = gp.root @ k
    return gp.alpha @ k, covariance(gp.kernel, gp.theta, blocks, blocks) - v.T @ v


def posterior_mean(gp: GP, x: Array) -> Array:  # (m, D) -> (m,)
    """In the precision of x. `posterior` takes far longer, for the standard deviation."""
    rows, alpha = {"x": gp.blocks["x"].astype(x.dtype)}, gp.alpha.astype(x.dtype)
    parts = [x[i : i + CHUNK] for i in range(0, len(x), CHUNK)]
    return np.concatenate([x[:0, 0], *(alpha @ covariance(gp.kernel, gp.theta, rows, {"x": part}) for part in parts)])


def _agreement(mean: Array) -> Array:  # (m, K) -> (K,)
    from scipy.stats import rankdata  # a slow import, and not everybody needs it

    ranks = rankdata(mean, axis=0)
    ranks -= ranks.mean(axis=0)
    size = np.linalg.norm(ranks, axis=0)
    ranks /= np.where(size > 0, size, 1.0)  # a constant agrees with nobody
    others = ranks.sum(axis=1, keepdims=True) - ranks
    average: Array = np.einsum("mk,mk->k", ranks, others) / max(1, mean.shape[1] - 1)
    return average
