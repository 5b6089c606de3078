"""The marginal likelihood of a kernel's hyperparameters with its gradient, and the linear algebra of exact GPs.

Notation
    theta       (p,)            log hyperparameters, see kernel.py
    y           (n,)            observations minus their prior mean
    weight      (n, n)          d log p(y) / d covariance = (alpha alpha^T - covariance^-1) / 2
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf, dtrtri

from jumbo_bo.models.kernel import Blocks, Kernel, Term, prior_mean

Array = npt.NDArray[np.float64]

Slopes = list[tuple[Array, Array]]  # per matern term: k, and dk/d log l_g = 5/3 * slope * d_g / l_g^2

JITTERS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)


class Evidence:
    """log p(y | theta) and its gradient. Distances and products do not depend on theta: computed once per fit."""

    def __init__(self, kernel: Kernel, blocks: Blocks, y: Array) -> None:
        self.kernel, self.y = kernel, y - prior_mean(kernel, blocks)
        self.parts = [pairs_of(t, blocks[t.block]) for t in kernel.terms]  # (groups, n, n) each

    def __call__(self, theta: Array) -> tuple[float, Array]:
        cov, slopes = self.covariance(theta)
        value, _, weight = density_and_derivative(self.y, cov, float(np.exp(theta[-1])))
        return value, self.gradient(theta, slopes, weight)

    def covariance(self, theta: Array) -> tuple[Array, Slopes]:
        """Without noise, and what its derivative takes up again."""
        n = len(self.y)
        cov = np.zeros((n, n))
        slopes: Slopes = []
        for (term, s), pairs in zip(self.kernel.slices(), self.parts, strict=True):
            scale = np.exp(theta[s])
            if term.kind == "linear":
                cov += weigh(scale, pairs)
                continue
            r = weigh(5.0 * scale[1:] ** -2, pairs)  # 5 r^2
            square = r / 3.0
            np.sqrt(r, out=r)
            slope = np.exp(-r)
            slope *= scale[0]
            square *= slope
            r += 1.0
            slope *= r
            square += slope
            cov += square
            slopes.append((square, slope))
        return cov, slopes

    def gradient(self, theta: Array, slopes: Slopes, weight: Array) -> Array:  # -> (p,)
        gradient = np.empty_like(theta)
        matern = iter(slopes)
        for (term, s), pairs in zip(self.kernel.slices(), self.parts, strict=True):
            scale, flat = np.exp(theta[s]), pairs.reshape(len(pairs), -1)
            if term.kind == "linear":
                gradient[s] = scale * (flat @ weight.ravel())
                continue
            k, slope = next(matern)
            gradient[s.start] = np.vdot(weight, k)
            gradient[s.start + 1 : s.stop] = 5 / 3 * scale[1:] ** -2 * (flat @ (slope * weight).ravel())
        gradient[-1] = np.exp(theta[-1]) * np.trace(weight)
        return gradient


def density_and_derivative(y: Array, cov: Array, noise: float) -> tuple[float, Array, Array]:
    """log N(y | 0, cov + noise), alpha (n,) and weight (n, n)."""
    chol = cholesky(cov, noise)
    alpha = solve(chol, y)
    return log_density(y, chol, alpha), alpha, 0.5 * (np.outer(alpha, alpha) - inverse_from_cholesky(chol))


def log_density(y: Array, chol: Array, alpha: Array) -> float:
    """log N(y | 0, L L^T), where alpha = (L L^T)^-1 y (Rasmussen & Williams, Eq. 2.30)."""
    return float(-0.5 * y @ alpha - np.log(np.diag(chol)).sum() - len(y) / 2 * math.log(2 * math.pi))


def weigh(weights: Array, pairs: Array) -> Array:  # (groups,), (groups, n, n) -> (n, n)
    return (weights @ pairs.reshape(len(pairs), -1)).reshape(pairs.shape[1:])


def pairs_of(term: Term, a: Array) -> Array:  # (n, p) -> (groups, n, n) squared distances or inner products per group
    parts = np.zeros((term.n_groups, len(a), len(a)))
    for column, group in enumerate(term.groups):
        v = a[:, column]
        parts[group] += (v[:, None] - v) ** 2 if term.kind == "matern52" else np.outer(v, v)
    return parts


def cholesky(cov: Array, noise: float) -> Array:
    diagonal = np.diag(cov)
    size = max(float(diagonal.mean()), 1.0)
    for jitter in JITTERS:
        noisy = cov.copy()
        np.fill_diagonal(noisy, diagonal + noise + jitter * size)
        chol: Array
        chol, info = dpotrf(noisy, lower=1, clean=1, overwrite_a=1)
        if info == 0 and np.isfinite(chol[-1, -1]):
            return chol
    raise np.linalg.LinAlgError(
        f"the {len(cov)} x {len(cov)} kernel matrix is not positive definite even with jitter {JITTERS[-1]}; "
        "are there infinities or NaN in the inputs?"
    )


def solve(chol: Array, y: Array) -> Array:
    x: Array = dpotrs(chol, y, lower=1)[0]
    return x


def inverse_root(chol: Array) -> Array:  # L -> L^-1
    return np.tril(dtrtri(chol, lower=1)[0])


def triangle_times(root: Array, k: Array) -> Array:  # lower triangle (n, n), (n, m) -> (n, m)
    """Their product in half the time of `root @ k`, in the precision of k."""
    times = strmm if k.dtype == np.float32 else dtrmm
    return np.asarray(times(1.0, root.T, k.T, side=1)).T


def semidefinite_root(cov: Array) -> Array:  # (m, m) -> R (m, m), R R^T = cov
    """By pivoted Cholesky: points whose values are as good as equal need no jitter, which would tell them apart."""
    lower, pivots, rank, _ = dpstrf(cov, lower=1)
    root = np.zeros_like(cov)
    root[pivots - 1, :rank] = np.tril(lower)[:, :rank]
    return root


def inverse_from_cholesky(chol: Array) -> Array:
    inverse: Array = dpotri(chol, lower=1)[0]
    return inverse + np.tril(inverse, -1).T
