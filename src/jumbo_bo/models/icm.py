"""Exact multi-task GP: the intrinsic coregionalisation model, whose kernel is a product of tasks and points.

    cov((x, i), (x', j)) = B[i, j] matern52(x, x') + [i = j = T - 1] offset,    B = L L^T

Notation
    x, task, y  (N, D), (N,), (N,) rows of T tasks; the last task is the target, its rows come last
    B, L        (T, T) covariance of the tasks and its lower triangular root, a free parameter
    phi         (p,) log length scale per group, the entries of L row by row, log noise variance per task
    offset      variance of the target's unknown level: its values were standardised by other points than the old ones

The hyperparameters are the maximum a posteriori under Gaussian priors of phi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import (
    cholesky,
    inverse_from_cholesky,
    inverse_root,
    log_density,
    pairs_of,
    solve,
    weigh,
)
from jumbo_bo.models.gp import CHUNK, Normal
from jumbo_bo.models.kernel import LogNormal, Term, term_covariance
from jumbo_bo.models.map import TOLERANCE, maximum_a_posteriori

Array = npt.NDArray[np.float64]
Tasks = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Prior:
    """The model before any data: T tasks that agree with each other by `correlation`."""

    term: Term  # of the points, its variance is in B
    tasks: int  # T
    noise: LogNormal = LogNormal(1e-2, 1.5)
    correlation: float = 0.7
    root_sd: float = 0.5  # of every entry of L
    offset: float = 1.0

    @cached_property
    def normal(self) -> tuple[Array, Array]:  # mean (p,), sd (p,) of phi
        groups, t = self.term.n_groups, self.tasks
        root = np.linalg.cholesky(np.full((t, t), self.correlation) + (1.0 - self.correlation) * np.eye(t))
        entries = root[np.tril_indices(t)]
        log_length, log_noise = math.log(self.term.length.median), math.log(self.noise.median)
        mean = np.concatenate([np.full(groups, log_length), entries, np.full(t, log_noise)])
        sds = (self.term.length.sd, groups), (self.root_sd, len(entries)), (self.noise.sd, t)
        return mean, np.concatenate([np.full(n, sd) for sd, n in sds])

    def split(self, phi: Array) -> Parameters:
        groups, t = self.term.n_groups, self.tasks
        root = np.zeros((t, t))
        root[np.tril_indices(t)] = phi[groups:-t]
        return Parameters(phi[:groups], root, np.exp(phi[-t:]))


class Parameters(NamedTuple):
    log_length: Array  # (groups,)
    root: Array  # (T, T) L
    noise: Array  # (T,)

    @property
    def b(self) -> Array:
        return self.root @ self.root.T


class LabelledRows(NamedTuple):
    x: Array  # (N, D)
    task: Tasks  # (N,)
    y: Array  # (N,)

    def first(self, n: int) -> LabelledRows:
        return LabelledRows(self.x[:n], self.task[:n], self.y[:n])

    def and_target(self, x: Array, y: Array, task: int) -> LabelledRows:
        return LabelledRows(np.vstack([self.x, x]), np.append(self.task, np.full(len(y), task)), np.append(self.y, y))


@dataclass(frozen=True)
class ICM:
    prior: Prior
    phi: Array
    rows: LabelledRows
    chol: Array = field(repr=False)
    alpha: Array = field(repr=False)

    @cached_property
    def root(self) -> Array:
        """Inverse of the Cholesky factor."""
        return inverse_root(self.chol)

    @cached_property
    def quick(self) -> npt.NDArray[np.float32]:
        return self.root.astype(np.float32)

    @property
    def n_old(self) -> int:
        """LabelledRows of the old tasks."""
        return int(np.count_nonzero(self.rows.task < self.prior.tasks - 1))


def build(prior: Prior, phi: Array, rows: LabelledRows) -> ICM:
    p = prior.split(phi)
    cov = p.b[np.ix_(rows.task, rows.task)] * _points(prior, p, rows.x, rows.x)
    target = rows.task == prior.tasks - 1
    cov[np.ix_(target, target)] += prior.offset
    cov[np.diag_indices_from(cov)] += p.noise[rows.task]
    chol = cholesky(cov, 0.0) if len(cov) else cov
    return ICM(prior, phi, rows, chol, solve(chol, rows.y) if len(cov) else rows.y)


def posterior(icm: ICM, x: Array, explained: Array | None = None) -> Normal:  # (m, D) ->
    """Of the target, in the precision of x. `explained` (m,) is what `explained_by_old` gave for these points: then
    only the target's own rows are left to do, and the quadratic cost in the old rows is saved."""
    prior, first = icm.prior, 0 if explained is None else icm.n_old
    p, alpha = prior.split(icm.phi), icm.alpha.astype(x.dtype)
    root = (icm.quick if x.dtype == np.float32 else icm.root)[first:]
    mean, var = np.zeros(len(x), x.dtype), np.full(len(x), p.b[-1, -1] + prior.offset, x.dtype)
    if explained is not None:
        var -= explained
    for i in range(0, len(x), CHUNK):
        k = _to_target(icm, p, x[i : i + CHUNK])
        mean[i : i + CHUNK] = alpha @ k
        v = root @ k
        var[i : i + CHUNK] -= np.einsum("ij,ij->j", v, v)
    return Normal(mean, np.sqrt(np.maximum(var, 1e-12)))


def explained_by_old(icm: ICM, x: Array) -> Array:  # (m, D) -> (m,)
    """How much of the prior variance the old rows take away. Old rows come first, so new trials do not change it."""
    n, p = icm.n_old, icm.prior.split(icm.phi)
    root = (icm.quick if x.dtype == np.float32 else icm.root)[:n, :n]
    old = replace(icm, rows=icm.rows.first(n))
    gone = np.zeros(len(x), x.dtype)
    for i in range(0, len(x), CHUNK):
        v = root @ _to_target(old, p, x[i : i + CHUNK])
        gone[i : i + CHUNK] = np.einsum("ij,ij->j", v, v)
    return gone


def fit(prior: Prior, rows: LabelledRows, start: Array | None = None, iterations: int = 50) -> Array:  # -> phi
    """Maximum a posteriori by L-BFGS from `start`, default the prior's mean."""
    mean, sd = prior.normal
    options = {"maxiter": iterations, **TOLERANCE}
    return maximum_a_posteriori(Evidence(prior, rows), mean, sd, () if start is None else (start,), options=options)


class Evidence:
    """log p(y | phi) and its gradient. Distances do not depend on phi: computed once per fit."""

    def __init__(self, prior: Prior, rows: LabelledRows) -> None:
        self.prior, self.rows = prior, rows
        self.pairs = pairs_of(prior.term, rows.x)  # (groups, N, N)
        self.member = np.eye(prior.tasks)[rows.task]  # (N, T)
        self.level = prior.offset * np.outer(self.member[:, -1], self.member[:, -1])

    def __call__(self, phi: Array) -> tuple[float, Array]:
        y, task, p = self.rows.y, self.rows.task, self.prior.split(phi)
        inverse_square = np.exp(-2.0 * p.log_length)
        square = weigh(5.0 * inverse_square, self.pairs)  # 5 r^2
        r = np.sqrt(square)
        decay = np.exp(-r)
        slope = (1.0 + r) * decay  # dk / d log l_g = 5/3 slope d_g / l_g^2
        k = slope + square / 3.0 * decay
        b = p.b[np.ix_(task, task)]
        cov = b * k + self.level
        cov[np.diag_indices_from(cov)] += p.noise[task]
        chol = cholesky(cov, 0.0)
        alpha = solve(chol, y)
        weight = 0.5 * (np.outer(alpha, alpha) - inverse_from_cholesky(chol))  # d value / d cov
        by_noise = p.noise * (np.diag(weight) @ self.member)
        slope *= b
        slope *= weight
        by_length = 5 / 3 * inverse_square * (self.pairs.reshape(len(self.pairs), -1) @ slope.ravel())
        weight *= k
        by_root = 2.0 * (self.member.T @ weight @ self.member) @ p.root
        gradient = np.concatenate([by_length, by_root[np.tril_indices(self.prior.tasks)], by_noise])
        return log_density(y, chol, alpha), gradient


def _points(prior: Prior, p: Parameters, a: Array, b: Array) -> Array:  # (n_a, D), (n_b, D) -> (n_a, n_b)
    return term_covariance(prior.term, np.concatenate([[0.0], p.log_length]), a, b)


def _to_target(icm: ICM, p: Parameters, x: Array) -> Array:  # (m, D) -> (N, m)
    """Covariance of all rows with points of the target."""
    rows = icm.rows
    k = _points(icm.prior, p, rows.x.astype(x.dtype), x)
    k *= p.b[rows.task, -1].astype(x.dtype)[:, None]
    k[rows.task == icm.prior.tasks - 1] += x.dtype.type(icm.prior.offset)
    return k
