"""Limits on measured quantities, as a recipe sees them, and how likely a configuration is to meet one.

Notation
    w_i, m_i, s_i   weight of model i of the quantity; mean and sd of what it says a trial would show, noise included
    low, high       the limit, on the scale of the models
    df, c           P = sum_i w_i (T((high - m_i) / (c s_i)) - T((low - m_i) / (c s_i))), T Student's distribution with
                    df degrees of freedom: the same doubt about scale and hyperparameters as in the intervals that are
                    shown (explain.py), so that a chance of 80 % comes true in about 80 of 100 trials
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, stdtr

from jumbo_bo.models.alternatives import families, posteriors
from jumbo_bo.models.gp import GP, Blocks
from jumbo_bo.search.acquisition import Score

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST, LOWEST = 1e-300, -1e6  # a chance, and its logarithm where that can be computed: never 0, to be compared
LIKELY = 0.5  # a pending trial from this chance on counts as one that meets the limits


class Doubt(NamedTuple):
    freedom: float
    wider: float


@dataclass(frozen=True)
class Limits:
    met: Mask  # (n,) the finished trials that meet all limits
    chance: Callable[[Array], Score]  # pending (p, d) -> log probability that a trial meets all limits

    def counting(self, pending: Array, blocks: Blocks) -> Mask:  # (p, d) -> (n + p,)
        """Trials that something has to beat: those that meet the limits, and pending ones that probably will."""
        likely = self.chance(pending)(blocks) >= math.log(LIKELY) if len(pending) else np.zeros(0, bool)
        return np.concatenate([self.met, likely])


def log_chance(gps: Sequence[tuple[float, GP]], low: float, high: float, doubt: Doubt) -> Score:
    """log P(low <= a trial's value <= high)."""

    def total(blocks: Blocks) -> Array:
        parts = []
        for family in families(gps):
            for (w, gp), (mean, sd) in zip(family, posteriors([gp for _, gp in family], blocks), strict=True):
                spread = doubt.wider * np.sqrt(np.asarray(sd, dtype=float) ** 2 + gp.noise)
                above, below = ((end - np.asarray(mean, dtype=float)) / spread for end in (high, low))
                parts.append(math.log(w) + _log_between(below, above, doubt.freedom))
        return np.asarray(np.maximum(np.logaddexp.reduce(parts), LOWEST))

    return total


def _log_between(below: Array, above: Array, freedom: float) -> Array:
    """log(T(above) - T(below)), by the tail where both are small."""
    if math.isinf(freedom) and np.isneginf(below).all():
        return np.asarray(log_ndtr(above))
    if math.isinf(freedom) and np.isposinf(above).all():
        return np.asarray(log_ndtr(-below))
    upper = below > 0  # by symmetry: the difference of two numbers close to 1 has no digits
    a, b = np.where(upper, -below, above), np.where(upper, -above, below)
    t = ndtr if math.isinf(freedom) else lambda x: stdtr(freedom, x)
    return np.asarray(np.log(np.maximum(t(a) - t(b), LEAST)))
