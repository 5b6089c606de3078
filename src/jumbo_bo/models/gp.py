"""Exact Gaussian process whose kernel is a sum of terms over named feature blocks.

Notation
    blocks  name -> (n, p)   features of n points: '1' ones, 'x' = T(u), 'h' latent features, 'g' head predictions
    y       (n,)             standardised target values; prior mean zero (paper, 'For simplicity ...') or a given block
    K       (n, n)           sum of terms, without noise;  K~ = K + s I with noise variance s (paper: sigma_n^2)
    L       (n, n)           lower Cholesky factor of K~
    alpha   (n,)             K~^-1 (y - prior mean)
    theta   (p,)             log hyperparameters, laid out as in kernel.py

`fit` returns a new frozen GP; the hyperparameters are the maximum a posteriori under log-normal priors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import (
    Evidence,
    cholesky,
    inverse_from_cholesky,
    inverse_root,
    log_density,
    solve,
    triangle_times,
)
from jumbo_bo.models.kernel import (
    Blocks,
    Kernel,
    LogNormal,
    Term,
    ard,
    centred,
    covariance,
    isotropic,
    matern_slices,
    prior_mean,
    term_covariance,
    term_sums,
    variance,
)
from jumbo_bo.models.map import TOLERANCE, maximum_a_posteriori

__all__ = [
    "GP",
    "Blocks",
    "Evidence",
    "Kernel",
    "LogNormal",
    "Normal",
    "Term",
    "ard",
    "best_theta",
    "build",
    "cholesky",
    "covariance",
    "expected",
    "extend",
    "fit",
    "fit_adam",
    "hallucinate",
    "isotropic",
    "joint_posterior",
    "leave_one_out",
    "mean_by_term",
    "optimistic",
    "posterior",
    "prior_mean",
    "variance",
]

Array = npt.NDArray[np.float64]

CHUNK = 4096  # rows of a posterior evaluated at once: the kernel slice stays in the processor's cache
FEW = 300  # observations up to which nothing is saved on a factor, so that results stay the same to the bit
CACHED = 2**20  # numbers in a kernel slice of more observations


class Normal(NamedTuple):
    mean: Array  # (m,)
    sd: Array  # (m,) of the function, without observation noise


@dataclass(frozen=True)
class GP:
    kernel: Kernel
    theta: Array
    blocks: Blocks  # of the n observations
    y: Array
    chol: Array = field(repr=False)
    alpha: Array = field(repr=False)

    @property
    def noise(self) -> float:
        return float(np.exp(self.theta[-1]))

    @cached_property
    def root(self) -> Array:
        """L^-1: a product with it is faster than solving for every point."""
        return inverse_root(self.chol)

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | theta)."""
        return log_density(centred(self.kernel, self.blocks, self.y), self.chol, self.alpha)

    def predict(self, blocks: Blocks) -> Normal:  # (m, .) -> mean (m,), sd (m,)
        return posterior(self, blocks)

    @cached_property
    def log_posterior(self) -> float:
        """log p(theta | y) up to a constant: what `fit` maximises. It is no evidence: nothing is integrated out."""
        median, sd = self.kernel.priors
        pull = (self.theta - median) / sd
        return self.log_likelihood - 0.5 * float(pull @ pull)


def build(kernel: Kernel, theta: Array, blocks: Blocks, y: Array) -> GP:
    """The GP with these hyperparameters, conditioned on the data. Adds jitter only when the factorisation needs it."""
    n = len(y)
    if n == 0:
        return GP(kernel, theta, blocks, y, np.zeros((0, 0)), np.zeros(0))
    cov = np.empty((n, n))
    size = n if n <= FEW else max(1, CACHED // n)
    for i in range(0, n, size):
        part = {t.block: blocks[t.block][i : i + size] for t in kernel.terms}
        cov[i : i + size] = covariance(kernel, theta, part, blocks)
    chol = cholesky(cov, float(np.exp(theta[-1])))
    return GP(kernel, theta, blocks, y, chol, solve(chol, centred(kernel, blocks, y)))


def extend(gp: GP, new: Blocks, y: Array) -> GP:  # (k, .), (n + k,)
    """The GP with k more points, and with the values of all. The factor and its inverse grow by k rows, which takes
    about k n^2 steps in place of n^3; both are those that `build` would find, up to rounding.

    L = [L_n 0; V^T C] with V = L_n^-1 k(n, new) and C C^T the covariance of the new points given the others."""
    n, k = len(gp.y), len(y) - len(gp.y)
    if k == 0:
        return replace(gp, y=y, alpha=solve(gp.chol, centred(gp.kernel, gp.blocks, y)))
    v = triangle_times(gp.root, covariance(gp.kernel, gp.theta, gp.blocks, new))  # (n, k)
    corner = cholesky(covariance(gp.kernel, gp.theta, new, new) - v.T @ v, gp.noise)
    chol, root = np.zeros((n + k, n + k), order="F"), np.zeros((n + k, n + k))
    chol[:n, :n], chol[n:, :n], chol[n:, n:] = gp.chol, v.T, corner
    root[:n, :n], root[n:, n:] = gp.root, inverse_root(corner)
    root[n:, :n] = -root[n:, n:] @ (v.T @ gp.root)
    blocks = {name: np.vstack([block, new[name]]) for name, block in gp.blocks.items()}
    extended = GP(gp.kernel, gp.theta, blocks, y, chol, solve(chol, centred(gp.kernel, blocks, y)))
    extended.__dict__["root"] = root  # known already
    return extended


def posterior(gp: GP, blocks: Blocks) -> Normal:  # (m, .) -> mean (m,), sd (m,)
    """Computed in the precision of `blocks`: single precision is several times faster and good for screening."""
    mean, var = prior_mean(gp.kernel, blocks), variance(gp.kernel, gp.theta, blocks)
    if len(gp.y) == 0:
        return Normal(mean, np.sqrt(var))
    alpha, root = gp.alpha.astype(mean.dtype, copy=False), gp.root.astype(mean.dtype, copy=False)
    for rows, k in _in_chunks(gp, blocks):
        mean[rows] += alpha @ k
        v = root @ k if len(alpha) <= FEW else triangle_times(root, k)
        var[rows] -= np.einsum("ij,ij->j", v, v)
    return Normal(mean, np.sqrt(np.maximum(var, 1e-12)))


def optimistic(gp: GP, blocks: Blocks, first: int) -> Normal:  # (m, .) -> mean (m,), sd (m,)
    """The mean of `posterior`, and an sd no smaller than its: that given the first so many observations alone. Both
    come from the same slices of the kernel, so the sd costs little more than the mean."""
    matern = [(t, s) for t, s in gp.kernel.slices() if t.kind == "matern52"]
    mean, var = prior_mean(gp.kernel, blocks), variance(gp.kernel, gp.theta, blocks)
    if len(gp.y) == 0 or len(matern) != 1:
        return posterior(gp, blocks)
    dtype, ((local, own),) = mean.dtype, matern
    alpha, root = gp.alpha.astype(dtype), inverse_root(gp.chol[:first, :first]).astype(dtype)
    linear = [(t, np.exp(gp.theta[s])[list(t.groups)]) for t, s in gp.kernel.slices() if t.kind == "linear"]
    wide = {t.block: blocks[t.block] for t, _ in linear}
    # Every row as seen by the linear terms, (m, q), and what this means for the first observations, (q, first).
    scaled = np.hstack([gp.blocks[t.block] * scale for t, scale in linear]) if linear else np.zeros((len(gp.y), 0))
    towards, seen = (scaled[:first].T).astype(dtype), (gp.alpha @ scaled).astype(dtype)
    for rows, k in matern_slices(local, gp.theta[own], gp.blocks[local.block], blocks[local.block]):
        features = np.hstack([wide[t.block][rows] for t, _ in linear]) if linear else np.zeros((len(k), 0), dtype)
        mean[rows] += k @ alpha + features @ seen
        v = (k[:, :first] + features @ towards) @ root.T
        var[rows] -= np.einsum("ij,ij->i", v, v)
    return Normal(mean, np.sqrt(np.maximum(var, 1e-12)))


def _sums(gp: GP, blocks: Blocks) -> Array:  # (m, .) -> (m,)
    """The mean of `posterior`, up to rounding."""
    mean = prior_mean(gp.kernel, blocks)
    for t, s in gp.kernel.slices():
        mean += term_sums(t, gp.theta[s], gp.alpha, gp.blocks[t.block], blocks[t.block])
    return mean


def expected(gp: GP, blocks: Blocks) -> Array:  # (m, .) -> (m,)
    """The mean of `posterior` without what its variance costs; of few observations the same to the bit."""
    if len(gp.y) > FEW:
        return _sums(gp, blocks)
    mean = prior_mean(gp.kernel, blocks)
    if len(gp.y):
        alpha = gp.alpha.astype(mean.dtype, copy=False)
        for rows, k in _in_chunks(gp, blocks):
            mean[rows] += alpha @ k
    return mean


def _in_chunks(gp: GP, blocks: Blocks) -> Iterator[tuple[slice, Array]]:
    """Rows, and the covariance (n, c) of the data with them."""
    used = {t.block for t in gp.kernel.terms}
    first = next(iter(blocks.values()))
    observed = {name: gp.blocks[name].astype(first.dtype, copy=False) for name in used}
    size = CHUNK if len(gp.y) <= FEW else max(1, min(CHUNK, CACHED // len(gp.y)))
    for i in range(0, len(first), size):
        rows = slice(i, i + size)
        yield rows, covariance(gp.kernel, gp.theta, observed, {name: blocks[name][rows] for name in used})


def joint_posterior(gp: GP, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> mean (m,), covariance (m, m)
    """Of the function, without observation noise. The covariance may be singular."""
    mean, cov = prior_mean(gp.kernel, blocks), covariance(gp.kernel, gp.theta, blocks, blocks)
    if len(gp.y):
        k = covariance(gp.kernel, gp.theta, gp.blocks, blocks)  # (n, m)
        v = gp.root @ k
        mean, cov = mean + gp.alpha @ k, cov - v.T @ v
    return mean, cov


def mean_by_term(gp: GP, blocks: Blocks) -> Array:  # (m, .) -> (terms, m)
    """The posterior mean split exactly: these rows and prior_mean sum to posterior(...).mean."""
    if len(gp.y) == 0:
        return np.zeros((len(gp.kernel.terms), len(next(iter(blocks.values())))))
    if len(gp.y) > FEW:
        return np.stack(
            [term_sums(t, gp.theta[s], gp.alpha, gp.blocks[t.block], blocks[t.block]) for t, s in gp.kernel.slices()]
        )
    return np.stack(
        [gp.alpha @ term_covariance(t, gp.theta[s], gp.blocks[t.block], blocks[t.block]) for t, s in gp.kernel.slices()]
    )


def leave_one_out(gp: GP) -> Normal:
    """Predictive mean and sd of every *observation* given all others (Rasmussen & Williams, Eq. 5.12)."""
    inverse = inverse_from_cholesky(gp.chol)
    precision = np.diag(inverse)
    return Normal(gp.y - gp.alpha / precision, 1.0 / np.sqrt(precision))


def hallucinate(gp: GP, pending: Blocks) -> GP:
    """Conditions on pending points as if their posterior mean had been observed: mean stays, variance shrinks."""
    if len(next(iter(pending.values()))) == 0:
        return gp
    y = np.concatenate([gp.y, expected(gp, pending)])
    return extend(gp, pending, y) if len(gp.y) else build(gp.kernel, gp.theta, pending, y)


def fit(kernel: Kernel, blocks: Blocks, y: Array, starts: Sequence[Array] = (), iterations: int = 100) -> GP:
    """With the hyperparameters that fit best."""
    return build(kernel, best_theta(kernel, blocks, y, starts, {"maxiter": iterations}), blocks, y)


def best_theta(
    kernel: Kernel, blocks: Blocks, y: Array, starts: Sequence[Array] = (), options: Mapping[str, float] | None = None
) -> Array:
    """Maximum a posteriori hyperparameters by L-BFGS from each of `starts` (default: the priors' medians)."""
    median, sd = kernel.priors
    if len(y) == 0:
        return median
    options = {"maxiter": 100, **TOLERANCE, **(options or {})}
    return maximum_a_posteriori(Evidence(kernel, blocks, y), median, sd, starts, math.log(1e-8), options)


def fit_adam(
    kernel: Kernel, blocks: Blocks, y: Array, start: Array | None = None, steps: int = 100, rate: float = 0.1
) -> GP:
    """The paper's own fit: gradient steps on the likelihood for length scales and noise, amplitude 1, no priors
    ('Details of training the Gaussian Process hyper-parameters'). What has a prior of sd 0 stays at its median."""
    median, sd = kernel.priors
    fixed = sd == 0.0
    theta = np.where(fixed, median, median if start is None else start)
    for term, s in kernel.slices():
        if term.kind == "matern52" and not fixed[s.start]:
            theta[s.start], fixed[s.start] = 0.0, True
    if len(y) == 0:
        return build(kernel, theta, blocks, y)
    objective = Evidence(kernel, blocks, y)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, steps + 1):
        gradient = objective(theta)[1] / len(y) * ~fixed
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        theta = theta + rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        theta[-1] = theta[-1] if fixed[-1] else max(theta[-1], math.log(1e-6))
    return build(kernel, theta, blocks, y)
