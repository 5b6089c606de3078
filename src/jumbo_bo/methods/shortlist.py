"""The best points that one search in a continuous space has seen, scored again for every suggestion of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumbo_bo.methods.base import Weighted
from jumbo_bo.models.alternatives import families
from jumbo_bo.models.gp import GP, Blocks, Kernel, Normal
from jumbo_bo.models.pending import Seen, joined, seen
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.argmax import SCREEN, STARTS, Cube
from jumbo_bo.search.evolution import FULL, SHORT, Pool, evolve

Array = npt.NDArray[np.float64]

KEPT = 256  # points of the screening, and as many of what followed
STAGES = FULL.generations


@dataclass(frozen=True)
class Shortlist:
    cube: Cube
    pool: Pool
    gps: Weighted  # without pending trials
    top: float  # the best that they expect of the trials

    @cached_property
    def u(self) -> Array:
        """The best points of the screening, and of every stage of what followed: the last ones are all close to one
        that is pending by now."""
        stages = [np.arange(SCREEN), *np.array_split(np.arange(SCREEN, len(self.pool.u)), STAGES)]
        kept = [KEPT, *[KEPT // STAGES] * STAGES]
        best = [
            rows[np.argsort(-self.pool.scores[rows], kind="stable")[:n]] for rows, n in zip(stages, kept, strict=True)
        ]
        chosen: Array = self.pool.u[np.concatenate(best)]
        return chosen

    @cached_property
    def blocks(self) -> Blocks:
        return self.cube.featurise(self.u)

    @cached_property
    def _seen(self) -> dict[Kernel, Seen]:
        """Of the first of every family: all that `improvement` asks."""
        return {gp.kernel: seen(gp, self.blocks) for (_, gp), *_ in families(self.gps)}

    def joined(self, gp: GP, blocks: Blocks) -> Normal:
        """What a GP with pending trials says of the list."""
        return joined(gp, self._seen[gp.kernel])

    def search(self, again: Score, score: Score, rng: np.random.Generator, further: Array) -> Pool:
        """`again` is the score of the list, `score` that of any points; `further` points are looked at as well."""
        pool = Pool(self.cube.space, lambda u: score(self.cube.featurise(u)))
        pool.u, pool.scores = self.u, again(self.blocks)
        pool.begun = len(self.u)
        if len(further):
            pool.add(further)
        evolve(pool, pool.spread(STARTS), rng, SHORT)
        return pool
