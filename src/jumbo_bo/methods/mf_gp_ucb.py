"""MF-GP-UCB (Kandasamy, Dasarathy, Oliva, Schneider, Póczos, 'Multi-fidelity Gaussian Process Bandit Optimisation',
JMLR 2019) with an old task as the lower fidelity, whose data are all there is: it is never queried again.

Notation
    phi_1(x)    a + b (mean_1 + sqrt(beta) sd_1) + zeta     the old task's bound, on the target's scale
    phi_2(x)    mean_2 + sqrt(beta) sd_2                    the target's bound (zeta_M = 0)
    phi(x)      min(phi_1, phi_2), maximised
    zeta        how far the two functions are believed to be apart at most
    a, b        the line from the old task's standardised values to the target's
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.likeness import spearman
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.methods.task_gps import TaskGPRecipe
from jumbo_bo.models.gp import Blocks
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Score, noisy, ucb

Array = npt.NDArray[np.float64]

TIE = 1e-3
SLOPE_SD = 0.5  # prior of the line: a ~ N(0, 1), b ~ N(1, SLOPE_SD^2)


@dataclass(frozen=True)
class MFGPUCB(TaskGPRecipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    zeta0: float = 0.05  # where zeta starts, about 1 % of the range of standardised values
    enough: int = 5  # trials from which on the old task is chosen by its rank correlation with them
    rows: int = 1000  # of an old task that its GP is conditioned on
    initial: int = 3  # space-filling points when there are no old runs

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        means = view.domain.featurise(view.u)["old_mean"]  # (n, K)
        task = closest_task(means, view.z, view.past.agreement, self.enough)
        line = fit_line(means[:, task], view.z)
        # A falling line: the old task says nothing about where the target is good, and its bound is void.
        zeta = widen(self.zeta0, line.shift + line.slope * means[:, task] - view.z) if line.slope > 0 else math.inf
        target, beta = self.surrogate(view), view.beta(self.schedule, self.beta0)
        phi = lower_of(ucb(target.predict, beta), task, line, zeta, beta)
        name, trials = repr(view.past.tasks[task]), f"your {len(view.z)} trials"
        note = f"Neither the old runs of {name} nor {trials} rule this point out"
        if zeta == math.inf:
            note = f"{trials.capitalize()} contradict the old runs of {name}, which are ignored"
        return most_promising(view, target, beta, note, phi)

    def surrogate(self, view: View) -> Surrogate:
        """The target's own GP: the old task bounds where to look, it predicts nothing."""
        gp = view.model(cold_kernel(view.space))
        return Surrogate(gp.predict, noisy(gp.predict, gp.noise))


class Line(NamedTuple):
    shift: float  # a
    slope: float  # b


def lower_of(target: Score, task: int, line: Line, zeta: float, beta: float) -> Score:
    """phi = min(phi_1, phi_2). Where the target's bound is flat, as before its first trial, the old mean decides."""
    if zeta == math.inf:
        return target

    def score(blocks: Blocks) -> Array:
        mean = blocks["old_mean"][:, task]
        a, b, root = (mean.dtype.type(v) for v in (line.shift + zeta, line.slope, math.sqrt(beta)))
        return (
            np.minimum(a + b * (mean + root * blocks["old_sd"][:, task]), target(blocks)) + mean.dtype.type(TIE) * mean
        )

    return score


def widen(zeta: float, gaps: Array) -> float:
    """zeta doubled until it covers every difference seen between a trial and the old task's mean. The order of the
    trials does not matter, so a resumed study finds the same."""
    largest = float(np.max(np.abs(gaps), initial=0.0))
    while zeta < largest:
        zeta *= 2.0
    return zeta


def fit_line(x: Array, z: Array) -> Line:  # (n,), (n,) ->
    """Posterior mean of z = a + b x with unit noise. Both scales are standardised, but by other points: trials of an
    optimizer are better than average, so their zero is not the zero of the old runs."""
    design = np.stack([np.ones_like(x), x], axis=1)
    precision = np.diag([1.0, SLOPE_SD**-2]) + design.T @ design
    shift, slope = np.linalg.solve(precision, np.array([0.0, SLOPE_SD**-2]) + design.T @ z)
    return Line(float(shift), float(slope))


def closest_task(means: Array, z: Array, agreement: Array, enough: int) -> int:  # (n, K), (n,), (K,) ->
    if len(z) < enough:
        return int(np.argmax(agreement))
    return int(np.argmax([np.nan_to_num(spearman(column, z)) for column in means.T]))
