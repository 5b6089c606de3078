"""The marginal likelihood of a kernel's hyperparameters with its gradient, and the linear algebra of exact GPs.

Notation
    theta       (p,)            log hyperparameters, see kernel.py
    y           (n,)            observations minus their prior mean; (n, K): their mean is one of K, equally likely
    r           (K,)            probability of each of them given the observations
    cov         (n (n + 1) / 2,) the lower triangle of their covariance, row by row
    weight      the same shape  d log p(y) / d cov: alpha alpha^T - covariance^-1, on the diagonal half of it
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyr, dtrmm, strmm
from scipy.linalg.lapack import dlauum, dpotrf, dpotrs, dpstrf, dtrtri

from jumbo_bo.models.kernel import SQRT5, Blocks, Kernel, Term, centred

Array = npt.NDArray[np.float64]

Slopes = list[tuple[Array, Array]]  # per matern term: k, and dk/d log l_g = 5/3 * slope * d_g / l_g^2

JITTERS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
SMALL = 64  # rows of a triangle that LAPACK inverts: larger ones take half the time by matrix products


class Triangle:
    """Where the lower triangle of an (n, n) matrix is: half of the entries of a symmetric one say it all."""

    def __init__(self, n: int) -> None:
        rows, columns = np.tril_indices(n)
        self.n, self.diagonal = n, np.flatnonzero(rows == columns)
        self._by_rows, self._by_columns = rows * n + columns, columns * n + rows

    def of(self, matrix: Array) -> Array:  # (n, n) in C order -> (n (n + 1) / 2,)
        entries: Array = matrix.reshape(-1)[self._by_rows]
        return entries

    def matrix(self, entries: Array) -> Array:  # (n (n + 1) / 2,) -> (n, n) in Fortran order, 0 above the diagonal
        full = np.zeros(self.n * self.n)
        full[self._by_columns] = entries
        return full.reshape(self.n, self.n).T


class Evidence:
    """log p(y | theta) and its gradient. Inner products do not depend on theta: computed once per fit."""

    def __init__(self, kernel: Kernel, blocks: Blocks, y: Array) -> None:
        self.kernel, self.y, self.triangle = kernel, centred(kernel, blocks, y), Triangle(len(y))
        self.parts = [self._part(t, blocks[t.block]) for t in kernel.terms]

    def _part(self, term: Term, a: Array) -> Array:
        """Of a linear term its inner products per group, (groups, n (n + 1) / 2); of the others the points, (n, p)."""
        return np.stack([self.triangle.of(p) for p in pairs_of(term, a)]) if term.kind == "linear" else a

    def __call__(self, theta: Array) -> tuple[float, Array]:
        cov, slopes = self.covariance(theta)
        value, _, weight = density_and_derivative(self.y, cov, float(np.exp(theta[-1])), self.triangle)
        return value, self.gradient(theta, slopes, weight)

    def covariance(self, theta: Array) -> tuple[Array, Slopes]:
        """Without noise, and what its derivative takes up again."""
        cov: Array | float = 0.0
        slopes: Slopes = []
        for (term, s), part in zip(self.kernel.slices(), self.parts, strict=True):
            scale = np.exp(theta[s])
            if term.kind == "linear":
                cov = cov + scale @ part
                continue
            r = self.triangle.of(_squares(part * (SQRT5 / scale[1:])[list(term.groups)]))  # 5 r^2
            np.maximum(r, 0.0, out=r)
            square = r / 3.0
            np.sqrt(r, out=r)
            slope = np.exp(-r)
            slope *= scale[0]
            square *= slope
            r += 1.0
            slope *= r
            square += slope
            cov = cov + square
            slopes.append((square, slope))
        return np.asarray(cov), slopes

    def gradient(self, theta: Array, slopes: Slopes, weight: Array) -> Array:  # -> (p,)
        gradient = np.empty_like(theta)
        matern = iter(slopes)
        for (term, s), part in zip(self.kernel.slices(), self.parts, strict=True):
            scale = np.exp(theta[s])
            if term.kind == "linear":
                gradient[s] = scale * (part @ weight)
                continue
            k, slope = next(matern)
            spread = np.bincount(term.groups, _weighed_squares(self.triangle.matrix(slope * weight), part))
            gradient[s.start] = weight @ k
            gradient[s.start + 1 : s.stop] = 5 / 3 * scale[1:] ** -2 * spread
        gradient[-1] = np.exp(theta[-1]) * weight[self.triangle.diagonal].sum()
        return gradient


def _squares(a: Array) -> Array:  # (n, p) -> (n, n) squared distances; as good as 0 may be below 0
    length, one = np.einsum("ij,ij->i", a, a)[:, None], np.ones((len(a), 1))
    return np.asarray(np.hstack([a, length, one]) @ np.hstack([-2.0 * a, one, length]).T)


def _weighed_squares(w: Array, a: Array) -> Array:  # (n, n) lower triangle, (n, p) -> (p,)
    """sum_ij w_ij (a_ip - a_jp)^2, without a matrix for every column."""
    return np.asarray((w.sum(axis=1) + w.sum(axis=0)) @ a**2 - 2.0 * np.einsum("ip,ip->p", a, w @ a))


def density_and_derivative(y: Array, cov: Array, noise: float, triangle: Triangle) -> tuple[float, Array, Array]:
    """log N(y | 0, cov + noise), alpha as y, and weight. Of K means the logarithm of the average density, whose
    derivative is the average of theirs by r."""
    chol = cholesky(triangle.matrix(cov), noise)
    alpha = solve(chol, y)
    if y.ndim == 1:
        weight = -triangle.of(dsyr(-1.0, alpha, a=_lower_inverse(chol).T, overwrite_a=1).T)
    else:
        r = shares(log_densities(y, chol, alpha))
        weight = triangle.of((alpha * r) @ alpha.T - _lower_inverse(chol))
    weight[triangle.diagonal] *= 0.5
    return log_density(y, chol, alpha), alpha, weight


def log_density(y: Array, chol: Array, alpha: Array) -> float:
    """log N(y | 0, L L^T), where alpha = (L L^T)^-1 y (Rasmussen & Williams, Eq. 2.30); of K columns the logarithm of
    their average density."""
    if y.ndim == 2:
        each = log_densities(y, chol, alpha)
        return float(np.logaddexp.reduce(each) - math.log(len(each)))
    return float(-0.5 * y @ alpha - _log_volume(chol))


def _log_volume(chol: Array) -> float:
    return float(np.log(np.diag(chol)).sum() + len(chol) / 2 * math.log(2 * math.pi))


def log_densities(y: Array, chol: Array, alpha: Array) -> Array:  # (n, K) -> (K,)
    """Of each column."""
    return np.asarray(-0.5 * np.einsum("ij,ij->j", y, alpha) - _log_volume(chol))


def shares(log_p: Array) -> Array:  # (K,) -> r (K,)
    p = np.exp(log_p - log_p.max())
    return np.asarray(p / p.sum())


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
        noisy = np.array(cov, order="F")  # as LAPACK wants it
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
    root = np.zeros(chol.shape)
    _invert(chol, root)
    return root


def _invert(chol: Array, root: Array) -> None:
    """[A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1], written to `root`."""
    n = len(chol)
    if n <= SMALL:
        root[:] = dtrtri(chol, lower=1)[0]
        return
    h = n // 2
    _invert(chol[:h, :h], root[:h, :h])
    _invert(chol[h:, h:], root[h:, h:])
    root[h:, :h] = -(root[h:, h:] @ (chol[h:, :h] @ root[:h, :h]))


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
    inverse = np.tril(_lower_inverse(chol))
    return inverse + np.tril(inverse, -1).T


def _lower_inverse(chol: Array) -> Array:  # L -> the lower triangle of (L L^T)^-1, in C order; above it anything
    inverse: Array = dlauum(inverse_root(chol).T, lower=0, overwrite_c=1)[0]
    return inverse.T
