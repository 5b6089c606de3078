"""Does the bound hold? Functions drawn from the model, kernels and noise known, beta_t of the theorem.

Notation
    x       (N, 3)  points drawn in the cube;  z (N, 1) = h(x), one feature of a random tanh net, standardised
    f       (N,)    the function;  y = f + noise, sd NOISE ** 0.5
    cold    the GP with kappa^c = matern52(x), warm: the GP with kappa^w = matern52(z)
    chi_g   the fifth of the points that an old task, a function of z, ranks best

Where f comes from (`law`):
    both     f = g(z), and the cold-GP is given kappa^w(h(x), h(x')): Assumptions 1 and 2 as laws. They fix the
             covariance of f twice, so the two kernels are the same and so are the two GPs
    parts    inside chi_g f is drawn from kappa^c, outside f = g(z), independently; each GP is shown its own part. All
             that the proof uses holds, with two different kernels
    feature  f = g(z): Assumption 1 fails. The old task has correlation RELATED with g
    x        f is drawn from kappa^c: Assumption 2 fails, and the old task has nothing to do with f

Which point is queried (`rule`): the largest
    gp-ucb       cold UCB
    partition    cold UCB in chi_g, warm UCB elsewhere: the algorithm of Theorem 1
    gate         the same with chi_g^(t) = {warm UCB within l_alpha of its best}: Algorithm 1
    constrained  cold UCB in chi_g^(t), nothing elsewhere
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.kernel import Blocks, Kernel, covariance, isotropic
from jumbo_bo.search import theory
from jumbo_bo.search.acquisition import in_gate, theory_beta
from jumbo_bo.space.space import Array

Row = dict[str, Any]
Flags = npt.NDArray[np.bool_]

POINTS, ROUNDS, DELTA = 500, 100, 0.1
NOISE = 0.01
LENGTH_X, LENGTH_Z = 0.5, 0.5
RELATED = 0.9
THRESHOLD = 0.1  # l_alpha
COLD, WARM = Kernel((isotropic("x", 3),)), Kernel((isotropic("z", 1),))
THETA_X, THETA_Z = np.log([1.0, LENGTH_X, NOISE]), np.log([1.0, LENGTH_Z, NOISE])
LATE = 20  # rounds that 'late' regret is averaged over
SHOWN = (1, 2, 3, 5, 7, *range(10, ROUNDS + 1, 10))  # rounds that are kept

CASES = (  # law, rule, does the proof cover it
    ("x", "gp-ucb", True),
    ("both", "partition", True),
    ("both", "gate", True),
    ("parts", "partition", True),
    ("feature", "gp-ucb", False),
    ("feature", "partition", False),
    ("feature", "gate", False),
    ("x", "partition", False),
    ("x", "gate", False),
    ("x", "constrained", False),
)


class Drawn(NamedTuple):
    blocks: Blocks  # x (N, 3), z (N, 1)
    f: Array  # (N,)
    region: Flags  # (N,) chi_g
    cold: Array  # (N, N) covariance the cold-GP is given
    warm: Array  # (N, N)


class Walk(NamedTuple):
    """One run."""

    chosen: npt.NDArray[np.intp]  # (T,)
    inside: Flags  # (T, N) lambda_t
    sd: Array  # (T,) of the GP that scored x_t, at x_t
    sure: Flags  # (T,) f lies within sqrt(beta_t) sd of the mean at every point (Lemma 1)


class Belief:
    """The posterior of one GP on all points, one observation after the other."""

    def __init__(self, cov: Array, rounds: int) -> None:
        self.cov, self.roots, self.n = cov, np.zeros((rounds, len(cov))), 0
        self.mean, self.var = np.zeros(len(cov)), np.diag(cov).copy()

    def observe(self, i: int, y: float) -> None:
        scale = math.sqrt(self.var[i] + NOISE)
        root = self.roots[self.n]
        theory.add_observation(self.roots[: self.n], self.cov[i], i, self.var, NOISE, out=root)
        self.mean += root * (y - self.mean[i]) / scale
        self.var = np.maximum(self.var - root**2, 0.0)
        self.n += 1


def draw(law: str, rng: np.random.Generator, points: int = POINTS) -> Drawn:
    x = rng.random((points, 3))
    hidden = np.tanh((2 * x - 1) @ rng.normal(size=(3, 16)) + rng.normal(size=16))
    z = hidden @ rng.normal(size=(16, 1))
    blocks = {"x": x, "z": (z - z.mean()) / z.std()}
    cold, warm = covariance(COLD, THETA_X, blocks, blocks), covariance(WARM, THETA_Z, blocks, blocks)
    g, other = _sample(warm, rng), _sample(warm, rng)
    old = RELATED * g + math.sqrt(1 - RELATED**2) * other if law == "feature" else other
    region = old > np.quantile(old, 0.8)
    if law == "both":
        return Drawn({"x": blocks["z"], "z": blocks["z"]}, g, region, warm, warm)
    if law == "parts":
        return Drawn(blocks, np.where(region, _sample(cold, rng), g), region, cold, warm)
    return Drawn(blocks, g if law == "feature" else _sample(cold, rng), region, cold, warm)


def walk(drawn: Drawn, law: str, rule: str, rng: np.random.Generator, rounds: int = ROUNDS) -> Walk:
    n = len(drawn.f)
    beta = betas(rule, n, rounds)
    cold, warm = Belief(drawn.cold, rounds), Belief(drawn.warm, rounds)
    chosen, inside = np.zeros(rounds, np.intp), np.zeros((rounds, n), np.bool_)
    sd, sure = np.zeros(rounds), np.zeros(rounds, np.bool_)
    for t in range(rounds):
        reach = math.sqrt(beta[t])
        warm_ucb = warm.mean + reach * np.sqrt(warm.var)
        if rule == "gp-ucb":
            inside[t] = True
        elif rule == "partition":
            inside[t] = drawn.region
        else:
            inside[t] = in_gate(warm_ucb, float(warm_ucb.max()), THRESHOLD)
        mean = np.where(inside[t], cold.mean, warm.mean)
        width = np.sqrt(np.where(inside[t], cold.var, warm.var))
        score = mean + reach * width  # Eq. 2 with the indicator
        if rule == "constrained":
            score[~inside[t]] = -np.inf
        i = chosen[t] = int(np.argmax(score))
        sd[t] = width[i]
        sure[t] = bool(np.all(np.abs(drawn.f - mean) <= reach * width + 1e-9))
        y = drawn.f[i] + math.sqrt(NOISE) * rng.standard_normal()
        if law != "parts" or drawn.region[i]:
            cold.observe(i, y)
        if law != "parts" or not drawn.region[i]:
            warm.observe(i, y)
    return Walk(chosen, inside, sd, sure)


def bound(drawn: Drawn, law: str, rule: str, run: Walk) -> tuple[Array, Row]:
    """The theorem's bound on R_1 ... R_T with Psi taken at its upper estimate, and the estimates at T.

    The gate moves, and the theorem's regions do not. Its proof needs only that every point scored by the cold-GP lies
    in chi_g and every other one in its complement, so chi_g becomes the union of the gates and the complement the
    union of their complements.
    """
    rounds, n = run.inside.shape
    outside = ~run.inside[np.arange(rounds), run.chosen]
    cold_kernel, theta = (WARM, THETA_Z) if law == "both" else (COLD, THETA_X)
    cold = theory.max_gain(cold_kernel, theta, _part(drawn.blocks, np.any(run.inside, axis=0)), rounds)
    warm = theory.max_gain(WARM, THETA_Z, _part(drawn.blocks, ~np.all(run.inside, axis=0)), rounds)
    constant = theory.regret_constant(NOISE)
    limit = theory.regret_bound(
        betas(rule, n, rounds), outside, theory.Side(cold.upper, constant), theory.Side(warm.upper, constant)
    )
    s = int(outside.sum())
    return limit, {"psi_cold": float(cold.lower[rounds - s]), "psi_warm": float(warm.lower[s])}


def useful_from(law: str, run: int, longest: int = 3000, points: int = POINTS) -> int | None:
    """The first T at which the bound of GP-UCB with the true kernel is below T times the range of f; before it the
    bound says nothing. None: later than `longest`."""
    drawn = draw(law, np.random.default_rng([run, 0]), points)
    kernel, theta = (COLD, THETA_X) if law == "x" else (WARM, THETA_Z)
    side = theory.Side(theory.max_gain(kernel, theta, drawn.blocks, longest).upper, theory.regret_constant(NOISE))
    limit = theory.regret_bound(betas("gp-ucb", points, longest), np.zeros(longest, np.bool_), side, side)
    below = limit < np.arange(1, longest + 1) * np.ptp(drawn.f)
    return int(np.argmax(below)) + 1 if below.any() else None


def rows_of(law: str, rule: str, run: int, points: int = POINTS, rounds: int = ROUNDS) -> list[Row]:
    """One run: a row for each round in SHOWN. The same number gives the same function for every rule."""
    drawn = draw(law, np.random.default_rng([run, 0]), points)
    path = walk(drawn, law, rule, np.random.default_rng([run, 1]), rounds)
    limit, psi = bound(drawn, law, rule, path)
    best = int(np.argmax(drawn.f))
    regret = drawn.f[best] - drawn.f[path.chosen]
    total = np.cumsum(regret)
    rounds_so_far = np.arange(1, rounds + 1)
    widths = theory.width_bound(betas(rule, points, rounds), path.sd)
    columns = {
        "cumulative": total,
        "average": total / rounds_so_far,
        "late": (total - np.concatenate([np.zeros(LATE), total])[:rounds]) / np.minimum(rounds_so_far, LATE),
        "simple": np.minimum.accumulate(regret),
        "bound": limit,
        "width_bound": widths,
        "trivial_bound": rounds_so_far * np.ptp(drawn.f),
        "below": np.logical_and.accumulate(total <= limit),  # in this and all earlier rounds
        "below_widths": np.logical_and.accumulate(total <= widths),
        "sure": np.logical_and.accumulate(path.sure),
        "s": np.cumsum(~path.inside[np.arange(rounds), path.chosen]),
        "optimum_inside": np.cumsum(path.inside[:, best]) / rounds_so_far,
    }
    label = {"law": law, "rule": rule, "run": run, **psi}
    kept = [t for t in SHOWN if t <= rounds]
    return [{**label, "t": t, **{name: column[t - 1].item() for name, column in columns.items()}} for t in kept]


def betas(rule: str, n: int, rounds: int) -> Array:
    """GP-UCB guards the confidence of one GP, JUMBO that of two."""
    beta = theory_beta(n, 2 * DELTA if rule == "gp-ucb" else DELTA)
    return np.array([beta(t, None) for t in range(1, rounds + 1)])


def _sample(cov: Array, rng: np.random.Generator) -> Array:  # (N, N) -> (N,)
    values, vectors = np.linalg.eigh(cov)
    drawn: Array = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(cov)))
    return drawn


def _part(blocks: Blocks, rows: Any) -> Blocks:
    return {name: block[rows] for name, block in blocks.items()}
