"""RGPE, the ranking-weighted GP ensemble (Feurer, Letham, Bakshy, 'Scalable Meta-Learning for Bayesian Optimization',
2018): one GP per old task and one of the target, averaged with weights that say how well each ranks the trials.

Notation
    n, K, S     finished trials, old tasks, samples of every model's posterior at the trials
    loss        (K + 1, S) pairs of trials that a sample ranks wrongly, the target's model last
    w           (K + 1,) share of the samples in which a model has the lowest loss, ties shared
    mean        sum_i w_i mean_i(x);  variance  sum_i w_i^2 sd_i(x)^2

The target's model is judged by what it says of a trial that it has not seen: f^-j, the GP without trial j.

Weights by stacking instead (Breiman, 'Stacked regressions', 1996; Yao et al., 'Using stacking to average Bayesian
predictive distributions', 2018): w >= 0 that sum to one, with the least squared error of the mean at the trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.methods.task_gps import TaskGPRecipe, joint
from jumbo_bo.models.evidence import cholesky, inverse_from_cholesky
from jumbo_bo.models.gp import GP, Blocks, Normal, covariance, leave_one_out, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Predict, noisy, ucb
from jumbo_bo.search.argmax import Finite

Array = npt.NDArray[np.float64]

CLOSE = 0.05  # of a parameter's range


@dataclass(frozen=True)
class RGPE(TaskGPRecipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    weights: Literal["ranking", "stacking"] = "ranking"
    samples: int = 500  # S
    few: int = 3  # with fewer trials there is nothing to rank: the old models share the weight equally
    dilution: float = 0.95  # an old model is dropped when its median loss is above this quantile of the target's
    variance: Literal["ensemble", "target"] = "ensemble"  # 'target': that of the target's GP alone, as in TST-R
    rows: int = 1000  # of an old task that its GP is conditioned on
    initial: int = 3  # space-filling points when there are no old runs

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        w, ensemble = self._ensemble(view)
        beta = view.beta(self.schedule, self.beta0)
        bound = ucb(ensemble.predict, beta)

        def apart(blocks: Blocks) -> Array:
            return np.where(_tried(view, blocks, w), -1e6, bound(blocks))

        score = bound if isinstance(view.domain, Finite) else apart
        return most_promising(view, ensemble, beta, _note(view.past.tasks, w), score)

    def surrogate(self, view: View) -> Surrogate:
        return gp_ucb_like(self).surrogate(view) if view.past is None else self._ensemble(view)[1]

    def _ensemble(self, view: View) -> tuple[Array, Surrogate]:
        """The weights, and the models averaged by them."""
        kernel = cold_kernel(view.space)
        target, w = view.model(kernel), self.weigh(view, view.fit(kernel))
        predict = mix(w, target, self.variance)
        return w, Surrogate(predict, noisy(predict, target.noise))

    def weigh(self, view: View, target: GP) -> Array:  # -> (K + 1,)
        old: tuple[GP, ...] = view.past.gps
        if len(view.z) < self.few:
            return np.append(np.full(len(old), 1.0 / len(old)), 0.0)
        at, rng, n = view.domain.featurise(view.u), view.rng, len(view.z)
        if self.weights == "stacking":
            left_out = leave_one_out(target).mean[:, None]
            return stack_weights(np.hstack([at["old_mean"], left_out]), view.z)
        losses = [ranking_loss(draw(*joint(gp, at), rng.standard_normal((self.samples, n))), view.z) for gp in old]
        losses.append(loo_ranking_loss(target, rng, self.samples))
        return rank_weights(np.stack(losses), self.dilution)


def mix(w: Array, target: GP, variance: str = "ensemble") -> Predict:
    """The ensemble's mean and standard deviation."""

    def at(blocks: Blocks) -> Normal:
        mean, sd = posterior(target, blocks)
        weight = w.astype(mean.dtype)
        mixed = blocks["old_mean"] @ weight[:-1] + weight[-1] * mean
        if variance == "target":
            return Normal(mixed, sd)
        return Normal(mixed, np.sqrt(blocks["old_sd"] ** 2 @ weight[:-1] ** 2 + (weight[-1] * sd) ** 2))

    return at


def draw(mean: Array, cov: Array, normals: Array) -> Array:  # (n,), (n, n), (S, n) -> (S, n)
    return mean + normals @ cholesky(cov, 1e-8).T


def ranking_loss(f: Array, y: Array) -> Array:  # (S, n), (n,) -> (S,)
    """In how many ordered pairs (j, k) a sample contradicts the values."""
    loss = np.zeros(len(f))
    for j in range(len(y)):
        loss += np.count_nonzero((f[:, j : j + 1] < f) != (y[j] < y), axis=1)
    return loss


def loo_ranking_loss(gp: GP, rng: np.random.Generator, samples: int) -> Array:  # -> (S,)
    """The same for f^-j(x_j) < f^-j(x_k), drawn jointly. With A = K~^-1 and c_j = K A_j / sqrt(A_jj), leaving trial j
    out changes the posterior mean at the trials by -c_j alpha_j / sqrt(A_jj) and its covariance by +c_j c_j^T."""
    inverse, y, n = inverse_from_cholesky(gp.chol), gp.y, len(gp.y)
    k = covariance(gp.kernel, gp.theta, gp.blocks, gp.blocks)
    root = np.sqrt(np.diag(inverse))
    c = k @ inverse / root  # column j is c_j
    f = draw(k @ gp.alpha, k - k @ inverse @ k, rng.standard_normal((samples, n)))
    loss = np.zeros(samples)
    for j in range(n):
        left_out = f + np.outer(rng.standard_normal(samples) - gp.alpha[j] / root[j], c[:, j])
        loss += np.count_nonzero((left_out[:, j : j + 1] < left_out) != (y[j] < y), axis=1)
    return loss


def rank_weights(losses: Array, dilution: float = 0.95) -> Array:  # (K + 1, S) -> (K + 1,)
    kept = np.median(losses, axis=1) <= np.quantile(losses[-1], dilution)
    kept[-1] = True
    losses = np.where(kept[:, None], losses, np.inf)
    winners = losses == losses.min(axis=0)
    weights: Array = (winners / winners.sum(axis=0)).mean(axis=1)
    return weights


def stack_weights(means: Array, y: Array) -> Array:  # (n, M), (n,) -> (M,)
    """argmin |y - means w| over w >= 0 that sum to one. With R = y - means, column by column, that error is |R w|.
    For v = s w the sum |R v|^2 + (s - 1)^2 is least, |R w|^2 / (1 + |R w|^2), at the same w: one non-negative least
    squares problem without the constraint."""
    from scipy.optimize import nnls

    models = means.shape[1]
    v = nnls(np.vstack([y[:, None] - means, np.ones(models)]), np.append(np.zeros(len(y)), 1.0))[0]
    weights: Array = v / v.sum()
    return weights


def _tried(view: View, blocks: Blocks, w: Array) -> npt.NDArray[np.bool_]:  # -> (m,)
    """Close to a finished or pending trial. Old models do not learn of a trial and would propose the same spot of a
    continuous space for ever; the more the target's own model weighs, the closer it may come."""
    near = np.zeros(len(blocks["x"]), dtype=bool)
    for point in view.space.transform(view.taken):
        near |= np.abs(blocks["x"] - point).max(axis=1) < CLOSE * (1.0 - w[-1])
    return near


def _note(names: tuple[str, ...], w: Array) -> str:
    if w[-1] == 0 and np.ptp(w[:-1]) == 0:
        return "The old runs, equally weighted, predict a good result"
    best = int(np.argmax(w[:-1]))
    return f"Your trials have {w[-1]:.0%} of the weight; of the old tasks, {names[best]!r} has the most ({w[best]:.0%})"
