"""The configurations that were best on average over the old tasks, in that order, then `gp-ucb`: what one would do
without any model of the old runs.

Notation
    u       (L, d)  the list, best first
    m       (m, 1)  average over the old tasks of what their GPs expect

Where the tasks have tried the same configurations the list is made of these, and the rank of each is averaged. Where
they share too few, m decides: on a finite space over all configurations, else over those that some task has tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.row_gp import best_and_others
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, closest
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.methods.task_gps import TaskGPs, learn_tasks
from jumbo_bo.search.argmax import Best, Finite

Array = npt.NDArray[np.float64]

KEPT = 10_000  # configurations of the list: a list of candidates may hold few of them
SAME = 1e-9  # snapped coordinates carry rounding
SHARED = 0.5  # of the configurations that were tried: when all tasks have tried so many, the list is made of them
ROWS = 300  # of a task, where its GP is asked


@dataclass(frozen=True, eq=False)
class BestList(Past):
    u: Array  # (L, d)
    gps: TaskGPs | None  # None: the tasks share configurations

    def blocks(self, t: Array) -> dict[str, Array]:  # (m, D) -> m (m, 1)
        return {} if self.gps is None else {"m": self.gps.means(t).mean(axis=1, keepdims=True)}


@dataclass(frozen=True)
class BestFirst(Recipe):
    first: int = 10  # trials that follow the list
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling points when there are no old runs

    learns = BestList

    @property
    def learning(self) -> Any:
        return None  # no option matters

    def check(self, history: History) -> None:
        if self.first < 1:
            raise InputError(f"best-first: first is {self.first}, expected at least 1; gp-ucb is the method without it")

    def learn(self, history: History, seed: int) -> BestList:
        """The same for every seed."""
        u, z, weight = history.wide()
        shared = (weight > 0).all(axis=1)
        if shared.mean() >= SHARED:
            return BestList.of(history, u=in_order(u[shared], average_rank(z[shared])), gps=None)
        gps, rng = learn_tasks(TaskGPs, history, ROWS, 0), np.random.default_rng(0)
        tried = np.unique(np.vstack([task.u[best_and_others(task, ROWS, rng)] for task in history.tasks]), axis=0)
        expected = gps.means(history.space.transform(tried)).mean(axis=1)
        return BestList.of(history, u=in_order(tried, expected), gps=gps)

    def __call__(self, view: View) -> Choice:
        if view.past is None or view.t > self.first:
            return gp_ucb_like(self)(view)
        return Choice(
            next_of(view, view.past),
            note=f"Number {view.t} of the configurations that were best on average in the old runs",
        )

    def surrogate(self, view: View) -> Surrogate:
        return gp_ucb_like(self).surrogate(view)


def next_of(view: View, best: BestList) -> Best:
    """The first of the list that can be tried and was not. When there is none, what is closest to the first."""
    domain = view.domain
    if best.gps is not None and isinstance(domain, Finite):
        return domain.argmax(lambda blocks: blocks["m"][:, 0], np.random.default_rng(0), view.hints, view.taken)
    for row in best.u:
        if len(view.taken) and np.abs(view.taken - row).max(axis=1).min() < SAME:
            continue
        if not isinstance(domain, Finite):
            if view.space.allowed(row[None])[0]:
                return Best(row, 0.0)
            continue
        for i in domain.rows_of(row[None])[:1]:
            return Best(domain.u[i], 0.0, int(i))
    return closest(view, best.u[0])


def average_rank(z: Array) -> Array:  # (n, K) -> (n,), larger is better
    from scipy.stats import rankdata  # a slow import, and not everybody needs it

    average: Array = rankdata(z, axis=0).mean(axis=1)
    return average


def in_order(u: Array, score: Array) -> Array:  # (n, d), (n,) -> (L, d)
    """Among equals the order stays."""
    return u[np.argsort(-score, kind="stable")[:KEPT]]
