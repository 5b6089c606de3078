"""Nothing left to gain? The probability that some configuration is better than the best one tried.

Notation, on the scale of z (larger is better)
    tried   (n, d) finished trials with a value
    others  (m, d) configurations not tried, those most likely to be better
    f       (n + m, s) joint samples of the function, drawn from each GP of the model
    level   what a point on its own has to exceed: the best that is expected of the trials, plus the gain

A sample has something left when its largest value over `others` beats its largest value over `tried` by more than the
gain. So noise is taken into account twice: the best value seen may have been lucky, and the trial that showed it need
not be the best one tried. Where trials may fail, a sample also has a threshold, uniform in [0, 1]: configurations that
are less likely to succeed do so nowhere in it, as neighbours succeed or fail together.

The hyperparameters that fit best are too sure of themselves, so those of the samples are drawn from their posterior
(models/plausible.py). Then the chances come true for functions from the model's own prior (tests/test_remaining.py). On
the tables of benchmarks/remaining.py, seed 100 with old runs, chances below 5 % came true in 3 % of 30 cases, and in
21 % of 48 with the hyperparameters that fit best. The factors by which explain.py widens intervals made the chances of
all cases too high instead: 57 % on average, where something was left in 46 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError
from jumbo_bo.methods.averaging import feasible
from jumbo_bo.methods.base import Chance, View, Weighted
from jumbo_bo.models.evidence import semidefinite_root
from jumbo_bo.models.gp import GP, Blocks, joint_posterior, posterior
from jumbo_bo.models.plausible import plausible
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.argmax import Finite
from jumbo_bo.search.sobol import over
from jumbo_bo.trials import Trial

Array = npt.NDArray[np.float64]

FITS = 16  # hyperparameters that are tried, of all GPs together
SAMPLES = 32  # for each of them
MOST = 256  # of the likeliest points, and as many drawn from the rest by how likely they are
SCREEN = 2_048  # Sobol' points of a continuous space
NEAR = 512  # points around the best trials there


@dataclass(frozen=True)
class Goal:
    """What was tried, and how much better something has to be."""

    view: View  # without pending trials
    trials: Sequence[Trial]
    warp: Warp
    gain: float  # in the user's units
    success: Chance | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gain) and self.gain >= 0):
            raise InputError(f"gain is {self.gain}, expected a number from 0 on, in the units of the objective")

    @cached_property
    def tried(self) -> Array:  # (n, d)
        return np.array([t.u for t in self.trials if not math.isnan(t.y)])

    @cached_property
    def gone(self) -> Array:  # (k, d), failures too
        return np.array([t.u for t in self.trials])

    def reached(self, f: Array, possible: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:  # (n + m, s), (m, s) -> (s,)
        n = len(self.tried)
        best = np.where(possible, f[n:], -np.inf).max(axis=0)
        gained: Array = self.warp.inverse(best) - self.warp.inverse(f[:n].max(axis=0))
        return gained > self.gain


def chance(gps: Weighted, goal: Goal) -> float:
    """At least one trial has a value."""
    view, rng = goal.view, np.random.default_rng([goal.view.seed, len(goal.trials), 1])
    tried = view.domain.featurise(goal.tried)
    best = np.asarray(sum(w * posterior(gp, tried).mean for w, gp in gps)).max(keepdims=True)
    level = float(goal.warp(goal.warp.inverse(best) + goal.gain)[0])
    likely = likelihood(gps, level)
    others = _others(likely if goal.success is None else feasible(likely, goal.success), goal, rng)
    m = len(next(iter(others.values())))
    if m == 0:
        return 0.0
    points = {name: np.concatenate([tried[name], others[name]]) for name in tried}
    p = np.ones(m) if goal.success is None else goal.success(np.asarray(others["x"], dtype=float))
    thresholds = (np.arange(SAMPLES) + 0.5) / SAMPLES
    total = 0.0
    for w, gp in gps:
        drawn = [_samples(other, points, rng) for other in plausible(gp, max(1, round(FITS * w)), rng)]
        total += w * float(np.mean([goal.reached(f, p[:, None] > thresholds) for f in drawn]))
    return total


def likelihood(gps: Weighted, level: float) -> Score:
    """log P(f > level) of each point on its own."""

    def part(w: float, gp: GP, blocks: Blocks) -> Array:
        mean, sd = posterior(gp, blocks)
        return np.asarray(np.log(w) + log_ndtr(((mean - level) / sd).astype(float)))

    return lambda blocks: np.asarray(np.logaddexp.reduce([part(w, gp, blocks) for w, gp in gps]))


def _samples(gp: GP, points: Blocks, rng: np.random.Generator) -> Array:  # -> (n + m, s)
    mean, cov = joint_posterior(gp, points)
    return mean[:, None] + semidefinite_root(cov) @ rng.standard_normal((len(mean), SAMPLES))


def _others(score: Score, goal: Goal, rng: np.random.Generator) -> Blocks:
    """Blocks of the likeliest points, and of some of the rest: the likeliest ones alone could be all alike."""
    domain, hints = goal.view.domain, goal.view.hints
    if isinstance(domain, Finite):
        open_rows = np.delete(np.arange(len(domain.u)), domain.rows_of(goal.gone))
        scores = score(domain.rough)[open_rows] if len(open_rows) > 2 * MOST else np.zeros(len(open_rows))
        chosen = open_rows[_chosen(scores, rng)]
        return {name: block[chosen] for name, block in domain.blocks.items()}
    top = domain.argmax(score, rng, hints, goal.gone).u
    near = np.vstack([top, hints])
    moves = 10.0 ** rng.uniform(-2.5, -0.7, (NEAR, 1)) * rng.standard_normal((NEAR, domain.space.d))
    around = np.clip(near[rng.integers(len(near), size=NEAR)] + moves, 0.0, 1.0)
    blocks = domain.featurise(domain.space.snap(np.vstack([top, around, over(domain.space, SCREEN, rng)])))
    chosen = _chosen(score(blocks), rng)
    return {name: block[chosen] for name, block in blocks.items()}


def _chosen(scores: Array, rng: np.random.Generator) -> npt.NDArray[np.intp]:  # (N,) log probabilities -> (m,)
    """All, or the largest and a draw from the rest without replacement (by adding Gumbel noise, the largest of which
    are such a draw)."""
    if len(scores) <= 2 * MOST:
        return np.arange(len(scores))
    order = np.argpartition(-scores, MOST)
    rest = order[MOST:]
    drawn = np.argpartition(-(scores[rest] + rng.gumbel(size=len(rest))), MOST)[:MOST]
    return np.concatenate([order[:MOST], rest[drawn]])
