"""A share of a domain: what one of several processes may choose from that choose at the same moment.

They know the same and would choose the same. So each looks only at its own share of the configurations, drawn at random
and the same for all. The best of a share is nearly as good as the best of all, and no other process chooses it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from jumbo_bo.search.argmax import Array, Cube, Domain, Finite


def share_of(domain: Domain, which: int, of: int) -> Domain:
    """Share `which` (0, 1, ...) of so many."""
    if isinstance(domain, Cube):
        return replace(domain, allowed=lambda key: zlib.crc32(key) % of == which)
    part = _Part(domain.u, domain.featurise, which, of)
    vars(part).update(blocks=domain.blocks, rough=domain.rough, _shadows=domain._shadows)  # computed once
    return part


@dataclass(frozen=True)
class _Part(Finite):
    which: int
    of: int

    def gone(self, taken: Array) -> npt.NDArray[np.intp]:
        """Also the rows of the other shares, unless nothing is left of this one. They stay rows of the table, so what
        is kept for each row, such as bounds, fits every share."""
        gone = super().gone(taken)
        both = np.union1d(gone, np.flatnonzero(_shares(len(self.u), self.of) != self.which))
        return both if len(both) < len(self.u) else gone


@cache
def _shares(n: int, of: int) -> npt.NDArray[np.int64]:  # -> (n,)
    """The share of each row. All have the same size, and neighbours are in different ones."""
    return np.random.default_rng(n).permutation(n) % of
