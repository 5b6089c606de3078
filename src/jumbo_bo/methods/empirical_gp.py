"""Empirical GP: the new problem as one more draw from the population that the old tasks are a sample of.

Lin, Ament, Tiao, Eriksson, Balandat and Bakshy, 'Empirical Gaussian Processes', ICML 2026 (arXiv 2602.12082).

Notation
    K       old tasks
    g       (m, K)  what the GP of each old task expects
    m       (m, 1)  their average: the prior mean
    dev     (m, K)  (g - m) / sqrt(K - 1): dev dev^T is the sample covariance of the old tasks
    kernel          a dev dev^T + matern52(x) + constant

The sample covariance has rank K - 1. The Matérn term is what no combination of old tasks can be, and what keeps so few
samples from being believed to the letter; the trials set both amplitudes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, gp_surrogate, most_promising, space_filling
from jumbo_bo.methods.task_gps import TaskGPRecipe, TaskGPs
from jumbo_bo.models.gp import Kernel, Term
from jumbo_bo.models.kernel import cold_kernel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Population(TaskGPs):
    def blocks(self, t: Array) -> dict[str, Array]:  # (m, D) -> m (m, 1), dev (m, K)
        g = self.means(t)
        mean = g.mean(axis=1, keepdims=True)
        return {"m": mean, "dev": (g - mean) / math.sqrt(max(1, g.shape[1] - 1))}


@dataclass(frozen=True)
class EmpiricalGP(TaskGPRecipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    rows: int = 1000  # of an old task that its GP is conditioned on
    initial: int = 3  # space-filling points when there are no old runs

    old_scale = True
    learns = Population

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        return most_promising(view, self.surrogate(view), view.beta(self.schedule, self.beta0))

    def surrogate(self, view: View) -> Surrogate:
        return gp_surrogate(view.model(population_kernel(view)))


def population_kernel(view: View) -> Kernel:
    cold = cold_kernel(view.space)
    if view.past is None:
        return cold
    constant, tasks = Term("1", "linear", (0,)), len(view.past.tasks)
    if tasks == 1:  # one sample has no covariance
        return Kernel((constant, *cold.terms), mean="m")
    return Kernel((constant, Term("dev", "linear", (0,) * tasks), *cold.terms), mean="m")
