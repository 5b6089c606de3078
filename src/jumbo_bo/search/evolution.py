"""Points scored in one search, and two ways to find better ones: a short evolution, and CMA-ES for scores with jumps.

Notation
    u       (m, d) points of the unit cube
    s       searches side by side
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

ITERATIONS = 60  # of CMA-ES


class Plan(NamedTuple):
    """Of the evolution, per start."""

    generations: int
    offspring: int
    parents: int
    width: float  # at first, of the unit cube


FULL = Plan(12, 48, 12, 0.1)  # benchmarks/argmax.py
SHORT = Plan(3, 24, 6, 0.1)  # from points that are good already


@dataclass(frozen=True)
class Best:
    u: Array  # (d,)
    score: float
    index: int | None = None  # row of a finite set


class Pool:
    """All points scored in one search, so that the best one not yet taken can be returned."""

    def __init__(self, space: Space, score: Callable[[Array], Array]) -> None:
        self.space, self.score = space, score
        self.u = np.zeros((0, space.d))
        self.scores = np.zeros(0)
        self.begun = 0  # points that it began with

    def add(self, u: Array) -> Array:
        u = self.space.snap(u)
        scores = self.score(u)
        self.u, self.scores = np.vstack([self.u, u]), np.concatenate([self.scores, scores])
        return scores

    def spread(self, n: int) -> Array:
        """The best point, then the best among those well apart from the ones chosen."""
        points = self.u[np.argsort(-self.scores, kind="stable")[:256]]
        chosen, apart = [points[0]], np.ones(len(points), bool)
        while len(chosen) < n:
            apart &= np.linalg.norm(points - chosen[-1], axis=1) > 0.2
            if not apart.any():
                break
            chosen.append(points[np.argmax(apart)])
        return np.array(chosen)

    def latest(self, n: int) -> Array:  # -> (n, d)
        """The best of the points that were added, not those it began with."""
        added = self.u[self.begun :]
        chosen: Array = added[np.argsort(-self.scores[self.begun :], kind="stable")[:n]]
        return chosen

    def best(self, taken: Array, allowed: Callable[[bytes], bool]) -> Best | None:
        """`allowed` is asked by the key of a point."""
        gone = set(keys_of(taken))
        for i in np.argsort(-self.scores, kind="stable"):
            (key,) = keys_of(self.u[i][None])
            if key not in gone and allowed(key):
                return Best(self.u[i], float(self.scores[i]))
        return None


def cma_es(pool: Pool, start: Array, rng: np.random.Generator) -> None:
    with warnings.catch_warnings():  # pycma warns at import when matplotlib is absent
        warnings.simplefilter("ignore")
        import cma

        options = {
            "bounds": [0.0, 1.0],
            "verbose": -9,
            "maxiter": ITERATIONS,
            "tolfun": 1e-6,
            "tolx": 1e-5,
            "seed": np.nan,  # leave numpy's global generator alone
            "randn": lambda *shape: rng.standard_normal(shape),
        }
        search = cma.CMAEvolutionStrategy(start, 0.1, options)
        while not search.stop():
            points = search.ask()
            search.tell(points, list(-pool.add(np.array(points))))


def evolve(pool: Pool, starts: Array, rng: np.random.Generator, plan: Plan = FULL) -> None:
    """Several searches side by side, each a normal distribution per coordinate that follows its best points."""
    centre = starts.copy()  # (s, d)
    width = np.full_like(centre, plan.width)
    weight = np.log(plan.parents + 0.5) - np.log(np.arange(1, plan.parents + 1))
    weight /= weight.sum()
    for _ in range(plan.generations):
        moves = rng.standard_normal((len(centre), plan.offspring, centre.shape[1]))
        points = np.clip(centre[:, None] + width[:, None] * moves, 0.0, 1.0)
        points[:, 0] = centre
        if pool.space.constraints:  # it goes on from points that may be tried
            points = pool.space.snap(points.reshape(-1, centre.shape[1])).reshape(points.shape)
        scores = pool.add(points.reshape(-1, centre.shape[1])).reshape(len(centre), plan.offspring)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : plan.parents]
        parents = np.take_along_axis(points, order[:, :, None], axis=1)
        moved = np.einsum("p,spd->sd", weight, parents)
        # The spread of the parents plus the step just made: wide while it travels, narrow once it has arrived.
        spread = np.sqrt(np.einsum("p,spd->sd", weight, (parents - centre[:, None]) ** 2))
        centre, width = moved, np.clip(spread, 1e-4, 0.3)


def keys_of(u: Array) -> list[bytes]:
    """Equal points have equal keys; snapped coordinates carry rounding of at most 1e-9."""
    return [row.tobytes() for row in np.round(u, 9) + 0.0]
