"""Upper confidence bounds, expected improvement, and the gate that joins the warm- and the cold-GP.

Notation
    beta_t      exploration weight of round t = 1, 2, ...;  UCB(x) = mean(x) + sqrt(beta_t) sd(x)
    T           budget of rounds, None when unknown
    l_alpha     acquisition threshold, in units of the standardised objective
    lambda_t    1 inside the gate (paper: chi_g), 0 outside

A surrogate is a function of feature blocks, (m, .) -> Normal (m,); so is an acquisition, (m, .) -> scores (m,). Larger
is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

from jumbo_bo.models.gp import Blocks, Normal

Array = npt.NDArray[np.float64]
Predict = Callable[[Blocks], Normal]  # what a surrogate of any kind says of some points
Score = Callable[[Blocks], Array]
Beta = Callable[[int, int | None], float]  # (t, T) -> beta_t
Gate = Literal["printed", "constrained"]

LOG_ROOT_2PI, ROOT_HALF_PI = 0.5 * math.log(2 * math.pi), math.sqrt(math.pi / 2)
FAR = -1e3  # here the series is exact to 1e-11, and the difference has lost all but 1e-10


def paper_beta(start: float = 10.0, rate: float = 1.0) -> Beta:
    """start * exp(-rate * t / T) (paper, 'Acquisition Function Details'); without a budget, `anytime_beta`."""

    def beta(t: int, horizon: int | None) -> float:
        if horizon is None:
            return anytime_beta(start)(t, None)
        return start * math.exp(-rate * t / horizon)

    return beta


def anytime_beta(start: float = 10.0, half: float = 25.0) -> Beta:
    """start / (1 + t / half): needs no budget, halves after `half` rounds and never stops exploring."""
    return lambda t, horizon: start / (1.0 + t / half)


def theory_beta(n_points: int, delta: float = 0.1) -> Beta:
    """beta_t of Theorem 1 for a finite set: 2 log(|chi| pi^2 t^2 / (3 delta))."""
    return lambda t, horizon: 2.0 * math.log(n_points * math.pi**2 * t**2 / (3.0 * delta))


def theory_beta_continuous(d: int, delta: float = 0.1, a: float = 1.0, b: float = 1.0, r: float = 1.0) -> Beta:
    """beta_t of Theorem 2 on [0, r]^d, whose sample paths satisfy P(|df/dx_j| > L) <= a exp(-(L/b)^2):
    2 log(4 pi^2 t^2 / (3 delta)) + 4 d log(d t b r sqrt(log(4 d a / delta)))."""

    def beta(t: int, horizon: int | None) -> float:
        spread = d * t * b * r * math.sqrt(math.log(4.0 * d * a / delta))
        return 2.0 * math.log(4.0 * math.pi**2 * t**2 / (3.0 * delta)) + 4.0 * d * math.log(spread)

    return beta


def ucb(predict: Predict, beta: float) -> Score:
    """mean + sqrt(beta) sd."""

    def score(blocks: Blocks) -> Array:
        mean, sd = predict(blocks)
        return mean + np.asarray(math.sqrt(beta), mean.dtype) * sd

    return score


def log_expected_improvement(mean: Array, sd: Array, best: float | Array) -> Array:  # (m,), (m,) -> (m,)
    """log E max(f - best, 0) for f ~ N(mean, sd^2), accurate also where the expectation itself would be 0.

    With u = (mean - best) / sd it is log sd + log(phi(u) + u Phi(u)). Below u = -1 the sum is phi(u) (1 - r) with
    r = |u| Phi(u) / phi(u), and far below 1 - r = u^-2 - 3 u^-4 + ..., where the difference would be lost.
    """
    u = np.asarray((mean - best) / sd, dtype=float)
    near, below = np.maximum(u, -1.0), np.minimum(u, -1.0)
    log_phi = -0.5 * below**2 - LOG_ROOT_2PI
    rest = 1.0 + below * ROOT_HALF_PI * erfcx(-below / math.sqrt(2.0))
    far = below < FAR
    rest = np.where(far, (1.0 - 3.0 / below**2) / below**2, rest)
    value = np.where(
        u > -1.0, np.log(np.exp(-0.5 * near**2 - LOG_ROOT_2PI) + near * ndtr(near)), log_phi + np.log(rest)
    )
    return np.asarray(np.log(np.asarray(sd, dtype=float)) + value)


def remembered(predict: Predict) -> Predict:
    """The same, but what it says of the largest blocks seen is kept, so that another bound on the same table costs next
    to nothing."""
    kept: list[tuple[Blocks, Normal]] = []

    def recall(blocks: Blocks) -> Normal:
        if kept and kept[0][0] is blocks:
            return kept[0][1]
        predicted = predict(blocks)
        if not kept or len(predicted.mean) > len(kept[0][1].mean):
            kept[:] = [(blocks, predicted)]
        return predicted

    return recall


def noisy(predict: Predict, variance: float) -> Predict:
    """What an observation would show: the function and noise of this variance."""

    def observed(blocks: Blocks) -> Normal:
        mean, sd = predict(blocks)
        return Normal(mean, np.sqrt(sd**2 + variance))

    return observed


def gated(warm: Score, cold: Score, warm_best: float, threshold: float, gate: Gate = "printed") -> Score:
    """Algorithm 1, lines 6-7: the cold score where the warm score is within `threshold` of its best, else the warm one.

    threshold = inf gives the cold score everywhere (GP-UCB), threshold < 0 an empty gate and so the warm score
    everywhere (Offline DKL). At threshold = 0 the printed rule still scores the warm maximiser itself by the cold
    score; every other point keeps its warm score, so as the threshold falls to 0 all but the maximiser agree with
    Offline DKL.

    `constrained` never leaves the gate: inside it the cold score, outside minus infinity. The printed rule may pick
    a point just outside, because it compares cold scores with warm ones.
    """

    def score(blocks: Blocks) -> Array:
        w = warm(blocks)
        inside = in_gate(w, warm_best, threshold)
        if gate == "constrained" and threshold >= 0:
            # Outside, the distance to the gate: a search that starts outside finds its way in.
            return np.where(inside, cold(blocks), -1e6 + w)
        if not inside.any():
            return w
        return np.where(inside, cold(blocks), w)  # lambda * cold + (1 - lambda) * warm

    return score


def in_gate(warm_score: Array, warm_best: float, threshold: float) -> npt.NDArray[np.bool_]:
    """lambda_t(x) = 1(alpha_warm* - alpha_warm(x) <= l_alpha), Algorithm 1, line 6."""
    return warm_best - warm_score <= threshold


def blended(warm: Score, cold: Score, weight: float = 0.5) -> Score:
    """The ablation with a constant lambda: weight * cold + (1 - weight) * warm."""
    return lambda blocks: weight * cold(blocks) + (1.0 - weight) * warm(blocks)
