"""BOX-GP-UCB: GP-UCB in the smallest box that holds the best old configurations (Perrone, Shen, Seeger, Archambeau and
Jenatton, 'Learning search spaces for Bayesian optimization', NeurIPS 2019).

Notation
    t*      (K, D)  T(u) of the best configuration of every old task
    low, high  (D,) their range per column. For one-hot columns this is the set of choices that were best somewhere:
                    a choice that never was has high = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, closest, gp_surrogate
from jumbo_bo.models.gp import Blocks
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Score, ucb
from jumbo_bo.search.argmax import sobol

Array = npt.NDArray[np.float64]

OUTSIDE = -1e3  # below every upper confidence bound, and small enough for single precision
HINTS = 64  # points of the box that a search on a continuous space starts from


@dataclass(frozen=True, eq=False)
class Box(Past):
    u: Array  # (K, d) the best configuration of every old task
    low: Array  # (D,)
    high: Array  # (D,)

    def blocks(self, t: Array) -> dict[str, Array]:
        """How far outside the box, in the sum over the columns."""
        beyond = np.maximum(self.low - t, 0.0) + np.maximum(t - self.high, 0.0)
        return {"outside": beyond.sum(axis=1, keepdims=True)}

    def fill(self, points: Array, nominal: npt.NDArray[np.bool_]) -> Array:  # (m, d) of the unit cube -> (m, d) inside
        inside: Array = self.u.min(axis=0) + points * np.ptp(self.u, axis=0)
        for i in np.flatnonzero(nominal):
            values = np.unique(self.u[:, i])
            inside[:, i] = values[np.minimum((points[:, i] * len(values)).astype(int), len(values) - 1)]
        return inside


@dataclass(frozen=True)
class BoxGPUCB(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3

    learns = Box

    @property
    def learning(self) -> Any:
        return None  # no option matters

    def check(self, history: History) -> None:
        if len(history.tasks) < 2:
            raise InputError(
                f"box-gp-ucb needs at least 2 old tasks to span a box, got {len(history.tasks)}; "
                "add old runs of another task, or use a method that learns from one, such as jumbo-mixture"
            )

    def learn(self, history: History, seed: int) -> Box:
        u = np.array([task.u[np.argmax(task.y)] for task in history.tasks])
        t = history.space.transform(u)
        return Box.of(history, u=u, low=t.min(axis=0), high=t.max(axis=0))

    def __call__(self, view: View) -> Choice:
        box: Box = view.past
        nominal = np.array([axis.width > 1 for axis in view.space.axes])
        k = len(view.taken)
        if k < self.initial:
            point = sobol(view.space.d, 1 << self.initial.bit_length(), np.random.default_rng(view.seed))[k]
            note = f"Initial point {k + 1} of {self.initial}, spread evenly over the box of the best old runs"
            return Choice(closest(view, box.fill(point[None], nominal)[0]), note=note)
        surrogate = self.surrogate(view)
        beta = view.beta(self.schedule, self.beta0)
        hints = np.vstack([view.hints, box.fill(sobol(view.space.d, HINTS, view.rng), nominal)])
        score = within(ucb(surrogate.predict, beta))
        return Choice(view.domain.argmax(score, view.rng, hints, view.taken), surrogate, beta)

    def surrogate(self, view: View) -> Surrogate:
        return gp_surrogate(view.model(cold_kernel(view.space)))


def within(score: Score) -> Score:
    """The score inside the box; outside the distance to it, so that a finite box that is used up is left by the
    shortest way."""

    def boxed(blocks: Blocks) -> Array:
        outside = blocks["outside"][:, 0]
        return np.where(outside > 1e-8, OUTSIDE - outside, score(blocks))

    return boxed
