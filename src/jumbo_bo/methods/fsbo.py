"""FSBO: a GP on the features of a net, both learned on the old tasks as a start, then tuned to the trials.

M. Wistuba, J. Grabocka, 'Few-Shot Bayesian Optimization with Deep Kernel Surrogates', ICLR 2021.

Notation
    params  net, constant mean and kernel in one vector (learning/deep_gp.py), as the old tasks left them
    design  (k, d)  configurations that are good on the old tasks together: the first trials
    regret  (P, K)  how far each of P configurations is from the best of each of K old tasks, as a share of its range

Every suggestion tunes the params from the same start, so a resumed study has nothing to repeat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.deep_gp import DeepGP, Shape, conditioned, deep_blocks
from jumbo_bo.learning.row_gp import best_and_others
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, closest, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.models.gp import GP, Blocks, Normal, hallucinate
from jumbo_bo.search.acquisition import noisy
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

POOL = 200  # good old configurations that the design is chosen from
ROWS = 300  # of an old task, by which its values elsewhere are estimated
GAIN = 1e-3  # of average regret; a further point that brings less is no part of the design


@dataclass(frozen=True, eq=False)
class FewShotStart(DeepGP):
    design: Array


@dataclass(frozen=True)
class FSBO(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 5  # first trials at most, chosen by the old tasks; space-filling without old runs
    layers: tuple[int, ...] = (32, 32, 32, 32)  # widths of the rectified layers and of the features
    steps: int = 10_000  # on the old tasks, one task each
    rows: int = 64  # of it
    rate: float = 3e-3
    stretch: float = 2.0  # values are scaled by up to this, and by its inverse, at each step
    shift: float = 0.5  # and moved by up to this
    tuning: int = 100  # steps on the trials
    tuning_rate: float = 1e-3

    learns = FewShotStart
    old_scale = True

    @property
    def learning(self) -> Any:
        return [self.initial, self.layers, self.steps, self.rows, self.rate, self.stretch, self.shift]

    def learn(self, history: History, seed: int) -> FewShotStart:
        from jumbo_bo.learning.learners import deep_kernel  # imports jax

        shape = Shape((len(history.space.groups), *self.layers), tanh=False, linear=False, ard=False)
        plan = deep_kernel.Plan(1, self.rows, self.steps, self.rate, self.stretch, self.shift)
        params, steps = deep_kernel.meta_train(deep_kernel.rows_of(history), shape, plan, seed)
        start = FewShotStart.of(history, params=params, shape=shape, steps=steps, design=np.zeros((0, history.space.d)))
        if start.empty:
            return start
        tasks = tuple(task for task in history.tasks if len(task.y))
        pool = good_configurations(tasks)
        regret = regrets(start, history.space, tasks, pool, np.random.default_rng([seed, 5]))
        return replace(start, design=pool[greedy(regret, self.initial)])

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        past: FewShotStart = view.past
        k, n = len(view.taken), len(past.design)
        if k < n:
            return Choice(closest(view, past.design[k]), note=f"Initial point {k + 1} of {n}, good on the old tasks")
        beta = view.beta(self.schedule, self.beta0)
        note = "The old tasks' net and kernel, tuned to the new trials, say this point is good"
        return most_promising(view, self.surrogate(view), beta, note)

    def surrogate(self, view: View) -> Surrogate:
        if view.past is None:
            return gp_ucb_like(self).surrogate(view)
        shape: Shape = view.past.shape
        params = view.kept(("fsbo", len(view.u)), lambda: self.tuned(view))
        view.memory.pop(("fsbo", len(view.u) - 1), None)  # nobody goes back
        gp = conditioned(params, shape, view.space.transform(view.u), view.z)
        gp = hallucinate(gp, deep_blocks(params, shape, view.space.transform(view.pending)))
        predict = partial(_predicted, gp, params, shape)
        return Surrogate(predict, noisy(predict, gp.noise))

    def tuned(self, view: View) -> Array:  # -> params
        from jumbo_bo.learning.learners import deep_kernel  # imports jax

        past: FewShotStart = view.past
        x = (2 * view.space.transform(view.u) - 1).astype(np.float32)
        rows = deep_kernel.TaskSample(x, view.z)
        return deep_kernel.tune(past.params, past.shape, rows, self.tuning, self.tuning_rate)


def _predicted(gp: GP, params: Array, shape: Shape, blocks: Blocks) -> Normal:
    return gp.predict(deep_blocks(params, shape, blocks["x"]))


def good_configurations(tasks: tuple[Task, ...]) -> Array:  # -> (P, d)
    """The best of each task, none twice."""
    each = max(1, POOL // len(tasks))
    return np.unique(np.vstack([task.u[np.argsort(-task.y, kind="stable")[:each]] for task in tasks]), axis=0)


def regrets(
    past: DeepGP, space: Space, tasks: tuple[Task, ...], u: Array, rng: np.random.Generator
) -> Array:  # (P, d) -> (P, K)
    """By the GP of each task: not every configuration was tried in every task."""
    t, out = space.transform(u), []
    for task in tasks:
        rows = best_and_others(task, ROWS, rng)
        z = task.z[rows]
        mean = past.gp(space.transform(task.u[rows]), z).predict(past.blocks(t)).mean
        out.append((z.max() - mean) / max(np.ptp(z), 1e-9))
    regret: Array = np.clip(np.stack(out, axis=1), 0.0, 1.0)
    return regret


def greedy(regret: Array, most: int) -> list[int]:  # (P, K) -> rows
    """Each next row lowers the regret of the best so far, averaged over the tasks, the most."""
    best, chosen = np.ones(regret.shape[1]), list[int]()
    while len(chosen) < most:
        after = np.minimum(best, regret).mean(axis=1)
        i = int(np.argmin(after))
        if after[i] > best.mean() - GAIN:
            break
        chosen.append(i)
        best = np.minimum(best, regret[i])
    return chosen
