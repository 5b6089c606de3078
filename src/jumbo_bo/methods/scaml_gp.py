"""ScaML-GP: the new problem as a weighted sum of the old ones, plus what none of them has (Tighineanu, Grossberger,
Baireuther, Skubch, Falkner, Vinogradska, Berkenkamp, 'Scalable Meta-Learning with Gaussian Processes', AISTATS 2024).

Notation
    f_k         old task k given its rows: a GP of mean mu_k and covariance S_k
    f           sum_k w_k f_k + residual;   mean  sum_k w_k mu_k,   covariance  sum_k w_k^2 S_k + k_residual
    w           (K,)    w_k >= 0 with a prior exp(-w_k), Gamma(1, 1)
    theta       (p,)    log hyperparameters of the residual and of the noise
    r, n        rows of an old task, trials

S_k(x, x') = k(x, x') - k(x, rows) A_k k(rows, x'), A_k the inverse of the covariance of the rows. Between the trials
and a table of candidates this costs n r per candidate and task; nothing of size r is kept for the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from jumbo_bo.methods.base import FOLLOW_UP, Choice, Schedule, Surrogate, View, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.methods.task_gps import TaskGPRecipe, joint
from jumbo_bo.models.evidence import Evidence, cholesky, density_and_derivative, inverse_root, solve
from jumbo_bo.models.gp import CHUNK, GP, Blocks, Kernel, Normal, Term, covariance, variance
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.models.map import STRETCH, TOLERANCE
from jumbo_bo.search.acquisition import noisy
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

ITERATIONS = 100
NEGLIGIBLE = 1e-3  # of the average weight: such old tasks are left out of predictions, as in the paper's code


@dataclass(frozen=True)
class ScaMLGP(TaskGPRecipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    few: int = 3  # with fewer trials the old tasks weigh alike: one value alone speaks for no weight at all
    rows: int = 300  # of an old task that its GP is conditioned on
    initial: int = 3  # space-filling points when there are no old runs

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        model = weighted_sum(view, self.few)
        beta = view.beta(self.schedule, self.beta0)
        return most_promising(view, _surrogate(model), beta, _note(view.past.tasks, model.w))

    def surrogate(self, view: View) -> Surrogate:
        return gp_ucb_like(self).surrogate(view) if view.past is None else _surrogate(weighted_sum(view, self.few))


@dataclass(frozen=True)
class WeightedSum:
    """f, conditioned on trials."""

    old: tuple[GP, ...]
    w: Array  # (K,)
    kernel: Kernel  # of the residual
    theta: Array
    blocks: Blocks  # of the n trials
    y: Array  # (n,)

    @property
    def noise(self) -> float:
        return float(np.exp(self.theta[-1]))

    @cached_property
    def _used(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self.w)]

    @cached_property
    def _prior(self) -> tuple[Array, Array]:  # mean (n,), covariance (n, n) of f at the trials
        mean, cov = np.zeros(len(self.y)), covariance(self.kernel, self.theta, self.blocks, self.blocks)
        for k in self._used:
            old_mean, old_cov = joint(self.old[k], self.blocks)
            mean += self.w[k] * old_mean
            cov += self.w[k] ** 2 * old_cov
        return mean, cov

    @cached_property
    def _chol(self) -> Array:
        return cholesky(self._prior[1], self.noise)

    @cached_property
    def _root(self) -> Array:
        return inverse_root(self._chol)

    @cached_property
    def _alpha(self) -> Array:
        return solve(self._chol, self.y - self._prior[0])

    @cached_property
    def _readers(self) -> list[tuple[GP, Array, Array]]:
        """Per old task x (n + r, D) and G (n, n + r), so that w_k^2 S_k(trials, c) = G k(x, c)."""
        made = []
        for k in self._used:
            gp = self.old[k]
            inner = gp.root.T @ (gp.root @ covariance(gp.kernel, gp.theta, gp.blocks, self.blocks))  # (r, n)
            x = np.vstack([self.blocks["x"], gp.blocks["x"]])
            made.append((gp, x, self.w[k] ** 2 * np.hstack([np.eye(len(self.y)), -inner.T])))
        return made

    def predict(self, blocks: Blocks) -> Normal:  # (m, .) -> in the precision of `blocks`
        x, w = blocks["x"], self.w.astype(blocks["x"].dtype)
        mean = blocks["old_mean"].astype(x.dtype, copy=False) @ w
        var = blocks["old_sd"].astype(x.dtype, copy=False) ** 2 @ w**2 + variance(self.kernel, self.theta, blocks)
        if len(self.y) == 0:
            return Normal(mean, np.sqrt(var))
        trials = {t.block: self.blocks[t.block].astype(x.dtype, copy=False) for t in self.kernel.terms}
        readers = [(gp, at.astype(x.dtype), g.astype(x.dtype)) for gp, at, g in self._readers]
        alpha, root = self._alpha.astype(x.dtype), self._root.astype(x.dtype)
        for i in range(0, len(x), CHUNK):
            part = {name: blocks[name][i : i + CHUNK] for name in trials}
            cross = covariance(self.kernel, self.theta, trials, part)  # (n, c)
            for gp, at, g in readers:
                cross += g @ covariance(gp.kernel, gp.theta, {"x": at}, part)
            mean[i : i + CHUNK] += alpha @ cross
            v = root @ cross
            var[i : i + CHUNK] -= np.einsum("ij,ij->j", v, v)
        return Normal(mean, np.sqrt(np.maximum(var, 1e-12)))


class SumEvidence:
    """-log p(y, w, theta) up to a constant, and its gradient."""

    def __init__(self, old: Sequence[GP], kernel: Kernel, blocks: Blocks, y: Array) -> None:
        normals = [joint(gp, blocks) for gp in old]
        self.residual, self.y, (self.median, self.sd) = Evidence(kernel, blocks, y), y, kernel.priors
        self.triangle = self.residual.triangle
        self.means = np.stack([mean for mean, _ in normals], axis=1)  # (n, K)
        self.covs = np.stack([self.triangle.of(np.ascontiguousarray(cov)) for _, cov in normals])  # (K, n (n + 1) / 2)

    def __call__(self, parameters: Array) -> tuple[float, Array]:  # w and theta, (K + p,)
        w, theta = np.split(parameters, [self.means.shape[1]])
        cov, slopes = self.residual.covariance(theta)
        cov += w**2 @ self.covs
        noise, rest = float(np.exp(theta[-1])), self.y - self.means @ w
        value, alpha, weight = density_and_derivative(rest, cov, noise, self.triangle)
        pull = (theta - self.median) / self.sd
        by_w = self.means.T @ alpha + 2 * w * (self.covs @ weight)
        by_theta = self.residual.gradient(theta, slopes, weight)
        loss = -value + w.sum() + 0.5 * float(pull @ pull)
        return loss, np.concatenate([1.0 - by_w, pull / self.sd - by_theta])


def residual_kernel(space: Space) -> Kernel:
    """matern52(x) and a level: the values of the trials are standardised by other points than the old ones."""
    return Kernel((Term("1", "linear", (0,)), *cold_kernel(space).terms))


def fit(evidence: SumEvidence, start: Array, iterations: int) -> Array:  # (K + p,) -> (K + p,)
    far = STRETCH * evidence.sd
    low, high = np.maximum(evidence.median - far, math.log(1e-8)), evidence.median + far
    n_old = evidence.means.shape[1]
    bounds = [(0.0, None)] * n_old + list(zip(low, high, strict=True))
    options = {"maxiter": iterations, **TOLERANCE}
    found: Array = minimize(evidence, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


def weighted_sum(view: View, few: int = 3) -> WeightedSum:
    """The model of the finished trials; pending ones are hallucinated."""
    old: tuple[GP, ...] = view.past.gps
    kernel = residual_kernel(view.space)
    begin = np.concatenate([np.full(len(old), 1.0 / len(old)), kernel.priors[0]])

    def fitted(n: int, before: Array | None) -> Array:
        u, z = view.earlier(n)
        if n < max(1, few):
            return begin
        evidence = SumEvidence(old, kernel, view.domain.featurise(u), z)
        if before is None or n == few:
            return fit(evidence, begin, ITERATIONS)
        return fit(evidence, before, FOLLOW_UP)

    w, theta = np.split(view.chain("weighted sum", fitted), [len(old)])
    w = np.where(w > NEGLIGIBLE * w.mean(), w, 0.0)
    model = WeightedSum(old, w, kernel, theta, view.domain.featurise(view.u), view.z)
    if len(view.pending) == 0:
        return model
    expected = model.predict(view.domain.featurise(view.pending)).mean
    return WeightedSum(old, w, kernel, theta, view.domain.featurise(view.taken), np.concatenate([view.z, expected]))


def _surrogate(model: WeightedSum) -> Surrogate:
    return Surrogate(model.predict, noisy(model.predict, model.noise))


def _note(names: tuple[str, ...], w: Array) -> str:
    if not w.any():
        return "The old runs have no weight; your trials predict a good result"
    if len(w) > 1 and np.ptp(w) == 0:
        return "The old runs, equally weighted, predict a good result"
    best = int(np.argmax(w))
    return f"Of the old tasks, {names[best]!r} has the largest weight: {w[best]:.2g} of {w.sum():.2g} in all"
