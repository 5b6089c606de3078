"""Where to search, and the search: exact on finite sets, evolution elsewhere (CMA-ES when the score has jumps).

Notation
    u       (m, d) points of the unit cube
    score   blocks -> (m,), larger is better; may be discontinuous (the gate)
    taken   (k, d) observed or pending points, never proposed again on a finite set
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.gp import Blocks
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.evolution import Best as Best
from jumbo_bo.search.evolution import Pool, cma_es, evolve, keys_of
from jumbo_bo.search.sobol import sobol as sobol
from jumbo_bo.space.space import GRID_LIMIT, Space

Array = npt.NDArray[np.float64]
Featurise = Callable[[Array], Blocks]  # u (m, d) -> blocks

SCREEN = 512  # Sobol' points scored before a search starts
STARTS = 3
SAMPLE = 512  # rows on which the error of single precision is measured
CHUNK = 65_536  # points featurised at once
_NO_ROWS = np.zeros(0, dtype=np.intp)


class SpaceExhausted(RuntimeError):
    """Every configuration has been tried or is pending."""


class Rows(Mapping[str, Array]):
    """Some rows of blocks. Few blocks are asked for: the others are not copied."""

    def __init__(self, blocks: Blocks, rows: npt.NDArray[np.intp]) -> None:
        self._blocks, self._rows = blocks, rows
        self._copied: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._copied:
            self._copied[name] = self._blocks[name][self._rows]
        return self._copied[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)


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
        start, stop = np.searchsorted(shadow, here - 1e-8), np.searchsorted(shadow, here + 1e-8)
        found = stop - start
        of = np.repeat(np.arange(len(u)), found)
        rows = order[np.arange(found.sum()) + np.repeat(start - np.cumsum(found) + found, found)]
        return np.unique(rows[np.abs(self.u[rows] - u[of]).max(axis=1, initial=0.0) < 1e-9])

    def gone(self, taken: Array) -> npt.NDArray[np.intp]:
        """Rows that may not be chosen."""
        return self.rows_of(taken)

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
        gone = self.gone(taken)
        if not smooth or len(self.u) < 2 * SAMPLE or len(gone) >= len(self.u):
            return self._best_of(score(self.blocks), rng, gone)
        open_rows = np.delete(np.arange(len(self.u)), gone)
        if bounds is not None and len(open_rows) > 2 * SAMPLE:
            return self._best_of(self._below(score, bounds, open_rows), rng, gone)
        scores = score(self.rough).astype(float)
        top = open_rows[np.argpartition(-scores[open_rows], SAMPLE)[:SAMPLE]] if len(open_rows) > SAMPLE else open_rows
        sample = np.concatenate([top, rng.choice(open_rows, SAMPLE)])
        error = float(np.max(np.abs(self._exact(score, sample) - scores[sample])))
        near = open_rows[scores[open_rows] >= scores[top].max() - 4 * error]
        exact = np.full(len(self.u), -np.inf)
        exact[near] = self._exact(score, near)
        return self._best_of(exact, rng, gone)

    def _below(self, score: Score, bounds: Array, open_rows: npt.NDArray[np.intp]) -> Array:  # -> (N,)
        """The score where it could be largest, elsewhere -inf. Rows are taken by falling bound, until that of the next
        one is below the best score; margins as in `argmax`."""
        rough, exact = np.full((2, len(self.u)), -np.inf)
        first = open_rows[np.argpartition(-bounds[open_rows], SAMPLE)[:SAMPLE]]
        some, rough[first] = first[: SAMPLE // 4], self._rough(score, first)
        exact[some] = self._exact(score, some)
        margin = 4 * float(np.max(np.abs(exact[some] - rough[some])))
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
        return score(Rows(self.rough, rows)).astype(float)

    def _exact(self, score: Score, rows: npt.NDArray[np.intp]) -> Array:
        return score(Rows(self.blocks, rows))

    def best_of(self, scores: Array, rng: np.random.Generator, taken: Array) -> Best:
        """Ties, as under a prior without data, are broken at random."""
        return self._best_of(scores, rng, self.gone(taken))

    def _best_of(self, scores: Array, rng: np.random.Generator, gone: npt.NDArray[np.intp]) -> Best:
        scores = scores.copy()
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
        return self.best(self.search(score, rng, hints, smooth), rng, taken)

    def search(self, score: Score, rng: np.random.Generator, hints: Array, smooth: bool = True) -> Pool:
        """Sobol' screening and the surroundings of the hints, then a search from the best few: CMA-ES where the score
        has jumps (the gate), else our own short evolution, whose points are all scored in one call per generation."""
        pool = Pool(self.space, lambda u: score(self.featurise(u)))
        pool.add(sobol(self.space.d, SCREEN, rng))
        if len(hints):
            n = SCREEN // 8
            reach = 10.0 ** rng.uniform(-2.5, -0.7, (n, 1))  # near and nearer
            near = hints[rng.integers(len(hints), size=n)] + reach * rng.standard_normal((n, self.space.d))
            pool.add(np.vstack([hints, np.clip(near, 0.0, 1.0)]))
        starts = pool.spread(STARTS)
        if smooth or self.space.d == 1:  # CMA-ES needs two dimensions
            evolve(pool, starts, rng)
        else:
            for start in starts:
                cma_es(pool, start, rng)
        return pool

    def best(self, pool: Pool, rng: np.random.Generator, taken: Array) -> Best:
        best = pool.best(taken, self.allowed)
        return best if best is not None else self.random(rng, taken)

    def random(self, rng: np.random.Generator, taken: Array) -> Best:
        gone = set(keys_of(taken))
        n = self.space.cardinality
        if n is not None and len(gone) >= n:
            raise SpaceExhausted(
                f"all {n:,} configurations have been tried or are pending; there is nothing left to suggest"
            )
        while True:
            for u in self.space.sample(rng, 256):
                if keys_of(u[None])[0] not in gone:
                    return Best(u, 0.0)


Domain = Finite | Cube


def domain_of(space: Space, featurise: Featurise, candidates: Array | None = None) -> Domain:
    if candidates is not None:
        return Finite(candidates, featurise)
    if space.cardinality is not None and space.cardinality <= GRID_LIMIT:
        return Finite(space.grid(), featurise)
    return Cube(space, featurise)


def _mixing(d: int) -> Array:
    return np.random.default_rng(0).random(d)
