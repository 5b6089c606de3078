"""Bounds for models that know the old tasks: a sum of two kernels, and an average of two models.

Notation
    k = k_old + k_new   k_old: linear in r known features (a constant, what is predicted for the old tasks), so of rank
                        r; k_new: what no old task knows, of prior variance a
    s                   noise variance;  v: largest prior variance of the part that is spoken of
    I, Psi_n            information gain and its maximum over n points, as in theory.py
    p_i(y), pi_i        density of the trials under model i, and its prior weight;  p = sum_i pi_i p_i

    Psi_n(k) <= Psi_n(k_old) + Psi_n(k_new)                                                                         (1)
    Psi_n(k_old) <= r/2 log(1 + n v / (r s)),  Psi_n(k_new) <= n/2 log(1 + a / s)                                   (2)
    -log p(y) <= -log p_i(y) + log(1 / pi_i) for every i and every y                                                (3)

Why. (1) With A = K_old / s and B = K_new / s, det(1 + A + B) = det(1 + A) det(1 + M), where M = B^1/2 (1 + A)^-1 B^1/2
is at most B, as (1 + A)^-1 is at most 1. (2) det(1 + F F^T / s) = det(1 + F^T F / s) has r eigenvalues whose mean is at
most 1 + n v / (r s), and the product of positive numbers is at most their mean to the power r; the second is Hadamard's
inequality. (3) A sum is at least each of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.kernel import Blocks, Kernel, Term, variance
from jumbo_bo.search.theory import max_gain

Array = npt.NDArray[np.float64]
Terms = Sequence[tuple[Term, slice]]  # with their places in theta


class SumGain(NamedTuple):
    """No n points tell more, n = 0 ... N: about each part, and so about their sum."""

    rank: int  # r
    old: Array  # (N + 1,)
    new: Array  # (N + 1,)

    @property
    def total(self) -> Array:
        return self.old + self.new


def rank_gain(n: npt.ArrayLike, rank: int, prior_variance: float, noise: float) -> Array:
    """The first bound of (2): it grows with the logarithm of n."""
    n = np.asarray(n, dtype=float)
    if rank == 0:
        return np.zeros_like(n)
    return np.asarray(0.5 * rank * np.log1p(n * prior_variance / (rank * noise)))


def small_gain(n: npt.ArrayLike, prior_variance: float, noise: float) -> Array:
    """The second bound of (2): close to n a / (2 s), and so to nothing, when the old tasks leave little to learn."""
    return np.asarray(0.5 * np.asarray(n, dtype=float) * np.log1p(prior_variance / noise))


def sum_gain(kernel: Kernel, theta: Array, blocks: Blocks, n: int) -> SumGain:
    """(1) for a kernel of linear and other terms over the points of `blocks` (m, .). What the others tell is bounded by
    greedy search too (`max_gain`), which is tighter unless they are small."""
    terms = list(kernel.slices())
    linear, rest = ([(t, s) for t, s in terms if (t.kind == "linear") == wanted] for wanted in (True, False))
    noise, count = float(np.exp(theta[-1])), np.arange(n + 1)
    rank = sum(len(t.groups) for t, _ in linear)
    old, new = np.zeros(n + 1), np.zeros(n + 1)
    if linear:
        old = rank_gain(count, rank, _largest(kernel, theta, linear, blocks), noise)
    if rest:
        part, its = _part(kernel, theta, rest)
        greedy = max_gain(part, its, blocks, n).upper
        new = np.minimum(greedy, small_gain(count, _largest(kernel, theta, rest, blocks), noise))
    return SumGain(rank, old, new)


def excess_loss(log_densities: Array, prior: Array) -> Array:  # (models, n), (models,) -> (models, n)
    """By how much the average's log loss exceeds that of each model, after 1 ... n trials: at most log(1 / pi_i), by
    (3). Row i of `log_densities`: log p_i of each trial given those before it."""
    single = np.cumsum(log_densities, axis=1)
    average = np.logaddexp.reduce(np.log(prior)[:, None] + single, axis=0)
    return np.asarray(single - average)


def rounds_apart(weight: float, distance: float) -> float:
    """How many trials at most, in expectation, the average's prediction may be further than `distance` from the true
    model's, in total variation, when one model of this prior weight is true: by (3) the sum of the expected
    Kullback-Leibler divergences is at most log(1 / pi_i), and each is at least twice the squared distance (Pinsker)."""
    return float(np.log(1.0 / weight) / (2.0 * distance**2))


def _part(kernel: Kernel, theta: Array, terms: Terms) -> tuple[Kernel, Array]:
    chosen = replace(kernel, terms=tuple(t for t, _ in terms), mean=None)
    return chosen, np.concatenate([*(theta[s] for _, s in terms), theta[-1:]])


def _largest(kernel: Kernel, theta: Array, terms: Terms, blocks: Blocks) -> float:
    return float(variance(*_part(kernel, theta, terms), blocks).max())
