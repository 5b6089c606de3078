"""Gaussian copula process: every task is seen through the ranks of its values, and the old tasks give the prior.

Salinas, Shen and Perrone, 'A quantile-based approach for hyperparameter transfer learning', ICML 2020.

Notation
    F       empirical distribution function of one task's values, cut off (Winsorised) at delta_N and 1 - delta_N
    s       (n,)    normal scores Phi^-1(F(y)); larger is better
    mu      (m, 1)  mean and
    sigma   (m, 1)  scale of the score of a configuration, learned from all old tasks together; 0 and 1 without any
    r       (n,)    residuals (s - mu) / sigma of the finished trials, on which the GP is fitted

Scores depend on ranks alone: a monotone map of the objective changes no suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from jumbo_bo.data.history import History
from jumbo_bo.learning.features import Layers
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import FOLLOW_UP, Array, Choice, Recipe, Schedule, Surrogate, View, space_filling
from jumbo_bo.models import gp as gps
from jumbo_bo.models.gp import GP, Blocks, Normal, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Predict, ucb
from jumbo_bo.search.argmax import Finite

SIGMA_FLOOR = 0.01
SAMPLES = 10_000  # configurations that a Thompson draw chooses from when the space cannot be listed


def normal_scores(y: Array) -> Array:  # (n,) -> (n,)
    """Phi^-1(F(y)), F halfway up its steps: symmetric, and equal values share a score. One value alone scores 0."""
    from scipy.stats import rankdata  # a slow import, and not everybody needs it

    n = len(y)
    cut = winsor(n)
    scores: Array = ndtri(np.clip((rankdata(y) - 0.5) / max(n, 1), cut, 1 - cut))
    return scores


def winsor(n: int) -> float:
    """delta_N = 1 / (4 N^(1/4) sqrt(pi log N))."""
    return 1 / (4 * n**0.25 * math.sqrt(math.pi * math.log(n))) if n > 1 else 0.5


@dataclass(frozen=True, eq=False)
class CopulaPrior(Past):
    """What the old runs say of a configuration, in plain numpy."""

    layers: Layers

    def blocks(self, t: Array) -> Mapping[str, Array]:  # (m, D) -> mu (m, 1), sigma (m, 1)
        *hidden, (weight, bias) = self.layers
        x = 2.0 * t - 1.0
        for w, b in hidden:
            x = np.maximum(x @ w + b, 0.0)
        mu, s = np.split(x @ weight + bias, 2, axis=1)
        return {"mu": mu, "sigma": SIGMA_FLOOR + np.logaddexp(0.0, s)}


@dataclass(frozen=True)
class GCP(Recipe):
    """'gp': a GP corrects the prior with the new trials (paper: GCP). 'prior': Thompson sampling from the prior alone
    (paper: CTS)."""

    variant: Literal["gp", "prior"] = "gp"
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 5  # first trials: Thompson draws from the prior; space-filling without old runs

    learns = CopulaPrior

    @property
    def learning(self) -> Any:
        return None  # no option matters

    def learn(self, history: History, seed: int) -> CopulaPrior:
        from jumbo_bo.learning.learners.copula import fit_prior  # imports jax

        x = [(2 * history.space.transform(task.u) - 1).astype(np.float32) for task in history.tasks]
        scores = [normal_scores(task.y) for task in history.tasks]
        return CopulaPrior.of(history, layers=fit_prior(np.vstack(x), np.concatenate(scores), SIGMA_FLOOR, seed))

    def __call__(self, view: View) -> Choice:
        if self.variant == "prior":
            return thompson(view)
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        if len(view.u) + len(view.pending) < self.initial:
            return thompson(view)
        beta = view.beta(self.schedule, self.beta0)
        trials = f"the ranks of {len(view.z)} new trials"
        note = f"Based on the old runs, corrected by {trials}" if view.past else f"Based on {trials}"
        scores = _corrected(view)
        best = view.domain.argmax(ucb(scores.predict, beta), view.rng, view.hints, view.taken)
        return Choice(best, in_units_of_z(view, scores), beta, note=note)

    def surrogate(self, view: View) -> Surrogate | None:
        return in_units_of_z(view, PRIOR if self.variant == "prior" else _corrected(view))


def thompson(view: View) -> Choice:
    """The best of one draw from N(mu(x), sigma(x)^2), independent between configurations."""
    if view.past is None:
        return Choice(view.domain.random(view.rng, view.taken), note="Drawn at random, as there are no old runs")
    domain, rng = view.domain, view.rng
    listed = domain if isinstance(domain, Finite) else Finite(view.space.sample(rng, SAMPLES), domain.featurise)
    mu, sigma = prior_at(listed.blocks)
    best = listed.best_of(mu + sigma * rng.standard_normal(len(mu)), rng, view.taken)
    return Choice(best, in_units_of_z(view, PRIOR), note="The best of a random draw from what the old runs predict")


def prior_at(blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> mu (m,), sigma (m,)
    x = blocks["x"]
    if "mu" not in blocks:
        return np.zeros(len(x), x.dtype), np.ones(len(x), x.dtype)
    return blocks["mu"][:, 0], blocks["sigma"][:, 0]


def _prior(blocks: Blocks) -> Normal:
    return Normal(*prior_at(blocks))


PRIOR = Surrogate(_prior, _prior)  # sigma is that of observed values: their noise is in it


def residual_gp(view: View) -> GP:
    """The GP of r = (s - mu) / sigma."""
    return gps.build(cold_kernel(view.space), _theta(view), *_residuals(view, len(view.u)))


def predicted(gp: GP, blocks: Blocks, noise: float = 0.0) -> Normal:  # (m, .) -> of the score
    (mu, sigma), (mean, sd) = prior_at(blocks), posterior(gp, blocks)
    return Normal(mu + sigma * mean, sigma * (np.sqrt(sd**2 + noise) if noise else sd))


def _corrected(view: View) -> Surrogate:
    """The prior and the GP of the trials, in scores."""
    gp = gps.hallucinate(residual_gp(view), view.domain.featurise(view.pending))
    return Surrogate(partial(predicted, gp), partial(predicted, gp, noise=gp.noise))


def in_units_of_z(view: View, scores: Surrogate) -> Surrogate | None:
    """A score as the value of that rank, by interpolation between the finished trials; beyond them it goes on with
    the average slope. None while there are no two different values to interpolate."""
    z, counts = np.unique(view.z, return_counts=True)
    if len(z) < 2:
        return None
    s = ndtri((np.cumsum(counts) - counts / 2) / len(view.z))  # not cut off: every value keeps its own score

    def value(at: Array) -> Array:
        beyond = at - np.clip(at, s[0], s[-1])
        values: Array = np.interp(at, s, z) + beyond * (z[-1] - z[0]) / (s[-1] - s[0])
        return values

    def translated(predict: Predict) -> Predict:
        def at(blocks: Blocks) -> Normal:
            mean, sd = predict(blocks)
            return Normal(value(mean), (value(mean + sd) - value(mean - sd)) / 2)

        return at

    return Surrogate(translated(scores.predict), translated(scores.observed))


def _residuals(view: View, n: int) -> tuple[Blocks, Array]:
    """After n trials. Each new value moves the ranks, and so the scores, of all."""
    u, z = view.earlier(n)
    blocks = view.domain.featurise(u)
    mu, sigma = prior_at(blocks)
    return blocks, (normal_scores(z) - mu) / sigma


def _theta(view: View) -> Array:
    def fitted(n: int, before: Array | None) -> Array:
        kernel = cold_kernel(view.space)
        starts, iterations = ([], 100) if before is None else ([before], FOLLOW_UP)
        return gps.fit(kernel, *_residuals(view, n), starts, iterations).theta

    return view.chain("copula residuals", fitted)
