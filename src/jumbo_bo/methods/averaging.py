"""What an average of GPs predicts, and the improvement that it expects.

Notation
    w_i     weight of model i; they sum to one
    EI_i    the improvement over the best so far that it expects
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from jumbo_bo.methods.base import Chance, Surrogate, View, Weighted
from jumbo_bo.models.alternatives import Said, expectations, families, posteriors
from jumbo_bo.models.gp import GP, Blocks, Normal, posterior
from jumbo_bo.search.acquisition import Score, log_expected_improvement
from jumbo_bo.search.sobol import over

Array = npt.NDArray[np.float64]

SPREAD, MODEST = 256, 0.5  # points, and the quantile of what is expected of them, to be beaten before limits are met
HOPELESS = 20.0  # log of a ratio of improvements that no difference in the chance of success makes up for


def feasible(score: Score, chance: Chance) -> Score:
    """log(improvement times probability of success). Where improvement is so small that not even certain success would
    make it the best, the probability is not computed."""

    def total(blocks: Blocks) -> Array:
        scores = np.array(score(blocks), dtype=float)
        close = scores > np.max(scores, initial=-np.inf) - HOPELESS
        scores[close] += np.log(chance(np.asarray(blocks["x"][close], dtype=float)))
        return scores

    return total


def to_beat(view: View, gps: Weighted, tried: Array, blocks: Blocks | None = None) -> float:
    """The best that is expected of the trials, finished ones and pending ones. `blocks` are theirs, if known."""
    if view.limits is None:
        known = view.domain.featurise(view.rivals(tried)) if blocks is None or view.space.constraints else blocks
        return float(np.max(expected_by(gps, known), initial=-np.inf))
    known = view.domain.featurise(tried) if blocks is None else blocks
    counting = view.limits.counting(view.pending, {name: block[len(view.u) :] for name, block in known.items()})
    if view.space.constraints:
        counting &= view.space.allowed(tried)
    return float(expected_by(gps, known)[counting].max()) if counting.any() else modest(view, gps)


def modest(view: View, gps: Weighted) -> float:
    """What has to be beaten while no trial meets the limits."""
    return float(np.quantile(expected_by(gps, view.domain.featurise(over(view.space, SPREAD, view.rng))), MODEST))


def worthwhile(view: View, score: Score, chance: Chance | None) -> Score:
    """The score times the chance that the limits are met, and that the trial has a value."""
    if view.limits is None:
        return possible(score, chance)
    met = view.limits.chance(view.pending)
    return possible(lambda blocks: np.asarray(score(blocks), dtype=float) + met(blocks), chance)


def possible(score: Score, chance: Chance | None) -> Score:
    return score if chance is None else feasible(score, chance)


def improvement(gps: Weighted, best: float, may_repeat: bool = False, predict: Said = posterior) -> Score:
    """log sum_i w_i EI_i. Where a trial may be repeated, EI_i is multiplied by 1 - sqrt(s_i / (sd_i^2 + s_i)), s_i the
    noise variance (Huang et al., 'Global optimization of stochastic black-box systems via sequential kriging
    meta-models', 2006): a trial next to another one tells little, as noise would hide what it adds. If
    `predict` is `optimistic`, no less than that: improvement grows with the sd."""

    def part(w: float, gp: GP, normal: Normal) -> Array:
        mean, sd = normal
        told = np.log1p(-np.sqrt(gp.noise / (np.asarray(sd, dtype=float) ** 2 + gp.noise))) if may_repeat else 0.0
        return np.asarray(math.log(w) + log_expected_improvement(mean, sd, best) + told)

    def total(blocks: Blocks) -> Array:
        said = said_by(gps, blocks, predict)
        return np.asarray(np.logaddexp.reduce([part(w, gp, one) for (w, gp), one in zip(gps, said, strict=True)]))

    return total


def said_by(gps: Weighted, blocks: Blocks, predict: Said = posterior) -> list[Normal]:
    return [one for family in families(gps) for one in posteriors([gp for _, gp in family], blocks, predict)]


def mixture(gps: Weighted) -> Surrogate:
    return Surrogate(partial(average, gps), partial(average, gps, noise=True), gps)


def expected_by(gps: Weighted, blocks: Blocks) -> Array:  # (m, .) -> (m,)
    means = [mean for family in families(gps) for mean in expectations([gp for _, gp in family], blocks)]
    return np.asarray(np.array([weight for weight, _ in gps], dtype=means[0].dtype) @ np.array(means))


def average(gps: Weighted, blocks: Blocks, noise: bool = False) -> Normal:  # (m, .) -> mean (m,), sd (m,)
    """Mean and standard deviation of the mixture, of the function or of what a trial would show."""
    means, variances = [], []
    for (_, gp), (mean, sd) in zip(gps, said_by(gps, blocks), strict=True):
        means.append(mean)
        variances.append(sd**2 + (gp.noise if noise else 0.0))
    w = np.array([weight for weight, _ in gps], dtype=means[0].dtype)
    middle = w @ np.array(means)
    return Normal(middle, np.sqrt(w @ (np.array(variances) + (np.array(means) - middle) ** 2)))
