"""Where to search, and the search: exact on finite sets, evolution elsewhere (CMA-ES when the score has jumps).

Notation
    u       (m, d) points of the unit cube
    score   blocks -> (m,), larger is better; may be discontinuous (the gate)
    taken   (k, d) observed or pending points, never proposed again on a finite set
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.gp import Blocks
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.sobol import sobol as sobol
from jumbo_bo.space.space import GRID_LIMIT, Space

Array = npt.NDArray[np.float64]
Featurise = Callable[[Array], Blocks]  # u (m, d) -> blocks

SCREEN = 512  # Sobol' points scored before a search starts
STARTS = 3
ITERATIONS = 60  # of CMA-ES
GENERATIONS, OFFSPRING, PARENTS = 12, 48, 12  # of the evolution, per start; benchmarks/argmax.py
SAMPLE = 512  # rows on which the error of single precision is measured
CHUNK = 65_536  # points featurised at once
_NO_ROWS = np.zeros(0, dtype=np.intp)


class SpaceExhausted(RuntimeError):
    """Every configuration has been tried or is pending."""


@dataclass(frozen=True)
class Best:
    u: Array  # (d,)
    score: float
    index: int | None = None  # row of a finite set


@dataclass(frozen=True)
class Finite:
    """A grid or a list of candidates: every point is scored."""

    u: Array  # (N, d)
    featurise: Featurise

    @cached_property
    def blocks(self) -> Blocks:
        parts = [self.featurise(self.u[i : i + CHUNK]) for i in range(0, len(self.u), CHUNK)]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    @cached_property
    def rough(self) -> Blocks:
        return {name: block.astype(np.float32) for name, block in self.blocks.items()}

    @cached_property
    def _shadows(self) -> tuple[npt.NDArray[np.intp], Array]:
        """One number per row that equal rows share and others almost surely do not: the order, and sorted by it."""
        shadow = self.u @ _mixing(self.u.shape[1])
        order = np.argsort(shadow)
        return order, shadow[order]

    def rows_of(self, u: Array) -> npt.NDArray[np.intp]:  # (k, d) -> rows that equal one of them
        order, shadow = self._shadows
        here = u @ _mixing(self.u.shape[1])
        ends = zip(np.searchsorted(shadow, here - 1e-8), np.searchsorted(shadow, here + 1e-8), u, strict=True)
        found = [order[i:j][np.abs(self.u[order[i:j]] - row).max(axis=1) < 1e-9] for i, j, row in ends if i < j]
        return np.unique(np.concatenate(found or [_NO_ROWS]))

    def maximum(self, score: Score, rng: np.random.Generator, hints: Array) -> float:
        return float(np.max(score(self.blocks)))

    def argmax(
        self,
        score: Score,
        rng: np.random.Generator,
        hints: Array,
        taken: Array,
        smooth: bool = True,
        bounds: Array | None = None,
    ) -> Best:
        """The exact maximum over the rows not taken. A smooth score is first computed in single precision for all
        rows, then in double precision for those that could be best given the error seen on a sample. With `bounds`
        (N,), nowhere below the score, it is computed only where it could be best, and the bounds there become it."""
        if not smooth or len(self.u) < 2 * SAMPLE:
            return self.best_of(score(self.blocks), rng, taken)
        open_rows = np.delete(np.arange(len(self.u)), self.rows_of(taken))
        if bounds is not None and len(open_rows) > 2 * SAMPLE:
            return self.best_of(self._below(score, bounds, open_rows), rng, taken)
        scores = score(self.rough).astype(float)
        if len(open_rows) == 0:
            return self.best_of(scores, rng, taken)  # says that the space is exhausted
        top = open_rows[np.argpartition(-scores[open_rows], SAMPLE)[:SAMPLE]] if len(open_rows) > SAMPLE else open_rows
        sample = np.concatenate([top, rng.choice(open_rows, SAMPLE)])
        error = float(np.max(np.abs(self._exact(score, sample) - scores[sample])))
        near = open_rows[scores[open_rows] >= scores[top].max() - 4 * error]
        exact = np.full(len(self.u), -np.inf)
        exact[near] = self._exact(score, near)
        return self.best_of(exact, rng, taken)

    def _below(self, score: Score, bounds: Array, open_rows: npt.NDArray[np.intp]) -> Array:  # -> (N,)
        """The score where it could be largest, elsewhere -inf. Rows are taken by falling bound, until that of the next
        one is below the best score; margins as in `argmax`."""
        rough, exact = np.full((2, len(self.u)), -np.inf)
        first = open_rows[np.argpartition(-bounds[open_rows], SAMPLE)[:SAMPLE]]
        exact[first], rough[first] = self._exact(score, first), self._rough(score, first)
        margin = 4 * float(np.max(np.abs(exact[first] - rough[first])))
        bounds[first] = rough[first]
        left = np.setdiff1d(open_rows[bounds[open_rows] >= rough.max() - margin], first)
        left, size = left[np.argsort(-bounds[left], kind="stable")], 2 * SAMPLE
        while len(left) and bounds[left[0]] >= rough.max() - margin:
            part, left, size = left[:size], left[size:], 2 * size
            bounds[part] = rough[part] = self._rough(score, part)
        near = np.flatnonzero((rough >= rough.max() - margin) & np.isneginf(exact))
        exact[near] = self._exact(score, near)
        return exact

    def _rough(self, score: Score, rows: npt.NDArray[np.intp]) -> Array:
        return score({name: block[rows] for name, block in self.rough.items()}).astype(float)

    def _exact(self, score: Score, rows: npt.NDArray[np.intp]) -> Array:
        return score({name: block[rows] for name, block in self.blocks.items()})

    def best_of(self, scores: Array, rng: np.random.Generator, taken: Array) -> Best:
        """Ties, as under a prior without data, are broken at random."""
        scores = scores.copy()
        gone = self.rows_of(taken)
        if len(gone) >= len(self.u):
            raise SpaceExhausted(
                f"all {len(self.u):,} configurations have been tried or are pending; there is nothing left to suggest"
            )
        scores[gone] = -np.inf
        top = np.flatnonzero(scores >= scores.max() - 1e-12)
        i = int(top[0] if len(top) == 1 else rng.choice(top))
        return Best(self.u[i], float(scores[i]), i)

    def random(self, rng: np.random.Generator, taken: Array) -> Best:
        return self.best_of(np.zeros(len(self.u)), rng, taken)


@dataclass(frozen=True)
class Cube:
    """A space with continuous parameters, or a finite one too large to enumerate."""

    space: Space
    featurise: Featurise
    allowed: Callable[[bytes], bool] = lambda _: True  # by the key of a point; see share.py

    def maximum(self, score: Score, rng: np.random.Generator, hints: Array) -> float:
        return self.argmax(score, rng, hints, hints[:0]).score

    def argmax(self, score: Score, rng: np.random.Generator, hints: Array, taken: Array, smooth: bool = True) -> Best:
        """Sobol' screening and the surroundings of the hints, then a search from the best few: CMA-ES where the score
        has jumps (the gate), else our own short evolution, whose points are all scored in one call per generation."""
        pool = _Pool(self.space, lambda u: score(self.featurise(u)))
        pool.add(sobol(self.space.d, SCREEN, rng))
        if len(hints):
            n = SCREEN // 8
            reach = 10.0 ** rng.uniform(-2.5, -0.7, (n, 1))  # near and nearer
            near = hints[rng.integers(len(hints), size=n)] + reach * rng.standard_normal((n, self.space.d))
            pool.add(np.vstack([hints, np.clip(near, 0.0, 1.0)]))
        starts = pool.spread(STARTS)
        if smooth or self.space.d == 1:  # CMA-ES needs two dimensions
            _evolve(pool, starts, rng)
        else:
            for start in starts:
                _cma(pool, start, rng)
        best = pool.best(taken, self.allowed)
        return best if best is not None else self.random(rng, taken)

    def random(self, rng: np.random.Generator, taken: Array) -> Best:
        gone = set(_keys(taken))
        n = self.space.cardinality
        if n is not None and len(gone) >= n:
            raise SpaceExhausted(
                f"all {n:,} configurations have been tried or are pending; there is nothing left to suggest"
            )
        while True:
            for u in self.space.sample(rng, 256):
                if _keys(u[None])[0] not in gone:
                    return Best(u, 0.0)


Domain = Finite | Cube


def domain_of(space: Space, featurise: Featurise, candidates: Array | None = None) -> Domain:
    if candidates is not None:
        return Finite(candidates, featurise)
    if space.cardinality is not None and space.cardinality <= GRID_LIMIT:
        return Finite(space.grid(), featurise)
    return Cube(space, featurise)


class _Pool:
    """All points scored in one search, so that the best one not yet taken can be returned."""

    def __init__(self, space: Space, score: Callable[[Array], Array]) -> None:
        self.space, self.score = space, score
        self.u = np.zeros((0, space.d))
        self.scores = np.zeros(0)

    def add(self, u: Array) -> Array:
        u = self.space.snap(u)
        scores = self.score(u)
        self.u, self.scores = np.vstack([self.u, u]), np.concatenate([self.scores, scores])
        return scores

    def spread(self, n: int) -> Array:
        """The best point, then the best among those well apart from the ones chosen."""
        order = np.argsort(-self.scores, kind="stable")[:256]
        chosen = [self.u[order[0]]]
        for i in order[1:]:
            if len(chosen) == n:
                break
            if min(float(np.linalg.norm(self.u[i] - c)) for c in chosen) > 0.2:
                chosen.append(self.u[i])
        return np.array(chosen)

    def best(self, taken: Array, allowed: Callable[[bytes], bool]) -> Best | None:
        gone = set(_keys(taken))
        for i in np.argsort(-self.scores, kind="stable"):
            (key,) = _keys(self.u[i][None])
            if key not in gone and allowed(key):
                return Best(self.u[i], float(self.scores[i]))
        return None


def _cma(pool: _Pool, start: Array, rng: np.random.Generator) -> None:
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


def _evolve(pool: _Pool, starts: Array, rng: np.random.Generator) -> None:
    """Several searches side by side, each a normal distribution per coordinate that follows its best points."""
    centre = starts.copy()  # (s, d)
    width = np.full_like(centre, 0.1)
    weight = np.log(PARENTS + 0.5) - np.log(np.arange(1, PARENTS + 1))
    weight /= weight.sum()
    for _ in range(GENERATIONS):
        moves = rng.standard_normal((len(centre), OFFSPRING, centre.shape[1]))
        points = np.clip(centre[:, None] + width[:, None] * moves, 0.0, 1.0)
        points[:, 0] = centre
        scores = pool.add(points.reshape(-1, centre.shape[1])).reshape(len(centre), OFFSPRING)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :PARENTS]
        parents = np.take_along_axis(points, order[:, :, None], axis=1)
        moved = np.einsum("p,spd->sd", weight, parents)
        # The spread of the parents plus the step just made: wide while it travels, narrow once it has arrived.
        spread = np.sqrt(np.einsum("p,spd->sd", weight, (parents - centre[:, None]) ** 2))
        centre, width = moved, np.clip(spread, 1e-4, 0.3)


def _mixing(d: int) -> Array:
    return np.random.default_rng(0).random(d)


def _keys(u: Array) -> list[bytes]:
    """Equal points have equal keys; snapped coordinates carry rounding of at most 1e-9."""
    return [row.tobytes() for row in np.round(u, 9) + 0.0]
