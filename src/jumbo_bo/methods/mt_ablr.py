"""MT-ABLR: the old tasks and the target share a net; each has a Bayesian linear regression on its features.

V. Perrone, R. Jenatton, M. Seeger, C. Archambeau, 'Scalable Hyperparameter Transfer Learning', NeurIPS 2018.

Net and precisions are trained by the sum of the log marginal likelihoods of all tasks, the target's too: once on the
old tasks alone and then, a few steps from there, whenever a trial has finished. Without old runs this is ABLR.

Notation
    params      weights of the net, then log alpha_t, log beta_t per task, the target's last (learning/learners/ablr.py)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from jumbo_bo.data.history import History
from jumbo_bo.learning.learners import ablr
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.training import SPLIT_FROM
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, most_promising, space_filling
from jumbo_bo.methods.dngo import regression
from jumbo_bo.models.gp import Blocks
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

LEFT_OUT = 0.2  # share of the old rows that tell when to stop


@dataclass(frozen=True, eq=False)
class OldTasks(Past):
    """The net of the old tasks, and their rows: later training sees them again. It moves with every trial, so it gives
    no blocks."""

    params: Array
    rows: tuple[ablr.TaskRows, ...]


@dataclass(frozen=True)
class MTABLR(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    width: int = 50  # of each of the net's three layers
    decay: float = 0.3  # precision of the weights' prior; 1 is the prior that they are initialised from
    most: int = 200  # steps of L-BFGS on the old tasks alone
    restart: int = 10  # steps with the target in, every RESTART trials
    steps: int = 3  # and in between

    learns = OldTasks
    old_scale = True

    def learn(self, history: History, seed: int) -> OldTasks:
        rng, sizes = np.random.default_rng([seed, 0]), self._sizes(history.space)
        rows = [_rows(history.space, t.u, t.z) for t in history.tasks]
        no_target = _rows(history.space, np.zeros((0, history.space.d)), np.zeros(0))
        share = LEFT_OUT if sum(len(z) for _, z in rows) >= SPLIT_FROM else 0.0
        left = [rng.random(len(z)) < share for _, z in rows]
        learned = [ablr.TaskRows(x[~i], z[~i]) for (x, z), i in zip(rows, left, strict=True)]
        left_out = [ablr.TaskRows(x[i], z[i]) for (x, z), i in zip(rows, left, strict=True)]
        start = ablr.initial(sizes, len(rows) + 1, rng)
        with threadpool_limits(1):  # small matrices: a second thread mostly waits
            params = ablr.fit(start, [*learned, no_target], sizes, self.decay, self.most, [*left_out, no_target])
        return OldTasks.of(history, params=params, rows=tuple(rows))

    def __call__(self, view: View) -> Choice:
        if first := space_filling(view, self.initial):
            return first
        who = "The net of all tasks" if view.past else "The net of your trials"
        beta = view.beta(self.schedule, self.beta0)
        return most_promising(view, self.surrogate(view), beta, f"{who} predicts a good result")

    def surrogate(self, view: View) -> Surrogate:
        """Given the net, the best alpha and beta of the target are known exactly."""
        sizes = self._sizes(view.space)
        params = view.chain("ablr", partial(self._train, view))

        def basis(blocks: Blocks) -> Array:
            return ablr.features(params, sizes, blocks["x"])

        return regression(view, basis)

    def _train(self, view: View, n: int, before: Array | None) -> Array:  # -> params after n trials
        past: OldTasks | None = view.past
        sizes, steps = self._sizes(view.space), self.steps
        if before is None:  # from what the old runs left
            before = past.params if past else ablr.initial(sizes, 1, np.random.default_rng([view.seed, 0]))
            steps = self.restart
        old = past.rows if past else ()
        return ablr.fit(before, [*old, _rows(view.space, *view.earlier(n))], sizes, self.decay, steps)

    def _sizes(self, space: Space) -> tuple[int, ...]:
        return (len(space.groups), self.width, self.width, self.width)


def _rows(space: Space, u: Array, z: Array) -> ablr.TaskRows:
    return ablr.TaskRows((2 * space.transform(u) - 1).astype(np.float32), z)
