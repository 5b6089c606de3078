"""Information gain and the regret bounds of Theorems 1 and 2.

Notation
    A           a finite set of points, or a sequence in which points may repeat
    s           noise variance (paper: sigma_n^2);  v: largest prior variance, 1 in the paper
    K           (n, n) covariance of the points of A under one kernel: kappa^c on the block x, kappa^w on the block h
    I(A)        information gain, 1/2 log det(1 + K / s), in nats
    Psi_n(X)    maximum information gain: the largest I(A) over n points of X
    R_T         cumulative regret, sum over t <= T of f(x*) - f(x_t)
    chi_g       the region scored by the cold-GP;  Z_g: features h of its complement, scored by the warm-GP
    C           8 / log(1 + 1 / s), with a prior variance v: 8 v / log(1 + v / s)

    R_T < sqrt(C T beta_T (Psi_{T-s}(chi_g) + Psi_s(Z_g)))   with probability 1 - delta         (Theorem 1)

In the theorem's indices s is the number of rounds outside chi_g; in the code that is `outside.sum()`. beta_t is in
acquisition.py: `theory_beta` (Theorem 1) and `theory_beta_continuous` (Theorem 2). The beta_t of GP-UCB guards one GP
instead of two: `theory_beta(n, 2 * delta)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError
from jumbo_bo.models.kernel import Blocks, Kernel, covariance, variance

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GREEDY = 1.0 - 1.0 / math.e  # greedy reaches this share of the maximum (Nemhauser et al., 1978)
DISCRETISATION = math.pi**2 / 6.0  # what Theorem 2 adds to the bound: the sum of 1 / t^2


class MaxGain(NamedTuple):
    """Psi_0 ... Psi_n of one set, between two bounds. Greedy's own gain is the usual estimate."""

    chosen: npt.NDArray[np.intp]  # (n,) greedy's points, in order
    lower: Array  # (n + 1,) their gain
    upper: Array  # (n + 1,) no n points have more


class Side(NamedTuple):
    """One of the two GPs in the bound."""

    gain: Array  # (T + 1,) Psi_0 ... Psi_T of the set it scores
    constant: float  # C


def information_gain(cov: Array, noise: float) -> float:  # (n, n) ->
    """I = 1/2 log det(1 + K / s). By eigenvalues: rounding may leave a tiny negative one, which is a zero."""
    eigenvalues = np.maximum(np.linalg.eigvalsh(cov), 0.0) if len(cov) else np.zeros(0)
    return 0.5 * float(np.log1p(eigenvalues / noise).sum())


def max_gain(kernel: Kernel, theta: Array, blocks: Blocks, n: int, repeats: bool = True) -> MaxGain:
    """Greedy estimate of Psi_0 ... Psi_n over the points of `blocks` (m, .), in O(n^2 m).

    I is monotone and submodular, also when points may repeat (`repeats`, as queries of a noisy function may), so
    greedy reaches (1 - 1/e) Psi_n, and Psi_n is at most greedy's gain / (1 - 1/e). A second upper bound is often
    tighter: after any k points, n more add at most n times the best single gain left.
    """
    noise = math.exp(theta[-1])
    var = variance(kernel, theta, blocks)
    m = len(var)
    if not repeats and n > m:
        raise InputError(f"n is {n}, but there are {m} points; allow repeats or ask for fewer")
    roots, chosen = np.zeros((n, m)), np.zeros(n, np.intp)
    lower, left = np.zeros(n + 1), np.zeros(n + 1)
    free = np.ones(m, np.bool_)
    for k in range(n if m else 0):
        i = int(np.argmax(np.where(free, var, -1.0)))
        chosen[k], free[i] = i, repeats
        left[k] = 0.5 * math.log1p(var[i] / noise)
        lower[k + 1] = lower[k] + left[k]
        row = covariance(kernel, theta, {name: block[i : i + 1] for name, block in blocks.items()}, blocks)[0]
        var -= add_observation(roots[:k], row, i, var, noise, out=roots[k]) ** 2
        np.maximum(var, 0.0, out=var)
    left[n] = 0.5 * math.log1p(var[free].max(initial=0.0) / noise)
    count = np.arange(n + 1)
    ahead = np.min(lower[:, None] + left[:, None] * count, axis=0)
    return MaxGain(chosen, lower, np.minimum(lower / GREEDY, ahead))


def add_observation(roots: Array, row: Array, i: int, var: Array, noise: float, out: Array) -> Array:
    """Row k of the pivoted Cholesky factor after observing point i: roots (k, m), row K[i] (m,), var (m,) -> (m,).

    Its square is what the posterior variance of every point loses; its product with (y - mean[i]) / sqrt(var[i] + s)
    is what the posterior mean gains.
    """
    np.subtract(row, roots[:, i] @ roots, out=out)
    out /= math.sqrt(var[i] + noise)
    return out


def regret_constant(noise: float, prior_variance: float = 1.0) -> float:
    """C of Theorem 1, for a kernel whose prior variance need not be 1."""
    return 8.0 * prior_variance / math.log1p(prior_variance / noise)


def regret_bound(beta: Array, outside: Flags, cold: Side, warm: Side) -> Array:  # (T,), (T,) -> (T,)
    """The bound of Theorem 1 on R_1 ... R_T along a run; `outside[t]`: x_t was not in chi_g. With no round outside and
    cold.gain that of the whole set it is the bound of GP-UCB. Theorem 2: add DISCRETISATION."""
    rounds = np.arange(1, len(beta) + 1)
    s = np.cumsum(outside)
    gain = cold.constant * cold.gain[rounds - s] + warm.constant * warm.gain[s]
    bound: Array = np.sqrt(rounds * beta * gain)
    return bound


def width_bound(beta: Array, sd: Array) -> Array:  # (T,), (T,) -> (T,)
    """The proof's bound before any information gain: r_t <= 2 sqrt(beta_t) sd_t(x_t) (Lemma 2), summed."""
    bound: Array = np.cumsum(2.0 * np.sqrt(beta) * sd)
    return bound
