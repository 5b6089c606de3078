"""What the old tasks tell of the hyperparameters: each is predicted from the others, as the new one will be.

The models are those of models/population.py. Some rows of an old task take the place of the trials, the heads of the
other tasks that of the past; theta is fitted to each task, and the prior of the new one's theta is pooled from them.

Notation
    theta   (T, p)  the fits of T old tasks
    prior   (2, p)  log median and sd of each hyperparameter
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import Task
from jumbo_bo.data.warp import Warp, fit_warp
from jumbo_bo.learning.features import FeatureNet, deviations
from jumbo_bo.learning.row_gp import MANY
from jumbo_bo.models.gp import fit
from jumbo_bo.models.kernel import Blocks, Kernel
from jumbo_bo.models.population import LEVEL, alone, population
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

# Sizes by cost, about a second in all; none was measured against others.
TASKS, ROWS = 12, 60  # at most: tasks that are looked at, rows of each
LEAST_ROWS = 8
ITERATIONS = 60
WEAK = 2.0  # tasks that the weak prior counts for
LEAST_SD = 0.3  # of a logarithm: the new task may differ from all old ones


def learn_priors(space: Space, tasks: Sequence[Task], net: FeatureNet, seed: int) -> dict[str, Array]:
    """The priors of both models, none when fewer than two tasks have rows enough to tell."""
    rng = np.random.default_rng([seed, 4])
    known = [task for task in tasks if len(task.y) >= LEAST_ROWS]
    if len(known) < 2:
        return {}
    known = [known[i] for i in np.sort(rng.permutation(len(known))[:TASKS])]
    samples = [left_out(space, task, net, rng) for task in known]
    cold, columns = alone(space), samples[0][0]["dev"].shape[1]
    fits = [fit(cold, blocks, z, iterations=ITERATIONS).theta for blocks, z in samples]
    return {
        "alone": pooled(cold, np.array(fits)),
        "population": pooled(population(space, len(net.tasks)), _population_fits(space, columns, samples)),
    }


def left_out(space: Space, task: Task, net: FeatureNet, rng: np.random.Generator) -> tuple[Blocks, Array]:
    """Some rows of a task as the models see them that know the other tasks only."""
    rows = rng.permutation(len(task.y))[:ROWS]
    x = space.transform(task.u[rows])
    others = np.delete(net.predictions(x), net.tasks.index(task.name), axis=1)
    mean, dev = deviations(others)
    if len(net.tasks) > MANY:  # a kernel sees dev dev^T alone
        dev = np.linalg.qr(dev.T)[1].T
        dev = np.pad(dev, ((0, 0), (0, ROWS - dev.shape[1])))  # the same width for every task
    return {"1": np.ones((len(x), 1)), "x": x, "m": mean, "dev": dev}, task.z[rows]


def _population_fits(space: Space, columns: int, samples: Sequence[tuple[Blocks, Array]]) -> Array:
    kernel = population(space, columns)
    theta = np.array([fit(kernel, blocks, z, iterations=ITERATIONS).theta for blocks, z in samples])
    if columns:
        return theta
    # Of two tasks one is left, which has no covariance: nothing is learned of that amplitude.
    at = len(kernel.terms) - 1
    return np.insert(theta, at, population(space, 2).priors[0][at], axis=1)


def pooled(kernel: Kernel, theta: Array) -> Array:  # (T, p) -> (2, p)
    """Mean and spread over the tasks, with the weak prior as WEAK more of them. The level stays weak: old values are
    centred over the whole space, those of an optimizer's trials are not."""
    median, sd = kernel.priors
    n = len(theta)
    centre = (WEAK * median + theta.sum(axis=0)) / (WEAK + n)
    spread = np.sqrt((WEAK * sd**2 + np.sum((theta - centre) ** 2, axis=0)) / (WEAK + n))
    prior = np.stack([centre, np.maximum(spread, LEAST_SD)])
    prior[:, 0] = median[0], sd[0]
    return prior


def level_variance(warps: Sequence[Warp]) -> float:
    """How far the values of the new task may lie from those of the old ones before the first trial, as a variance in
    units of their scale: as far as the old ones lie apart, with the weak prior as WEAK more of them."""
    common = fit_warp(np.empty(0), warps)
    apart = [(warp.centre - common.centre) / common.scale for warp in warps if warp.sign == common.sign]
    return (WEAK * LEVEL.variance.median + float(np.sum(np.square(apart)))) / (WEAK + len(apart))
