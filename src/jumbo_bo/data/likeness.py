"""How alike tasks are: rank correlation of their results.

Notation
    t       (n, D)  configurations, as the models see them (T(u))
    y       (n,)    their results, larger is better
    rho     (K, K)  Spearman's correlation, 1 when two tasks agree which configurations are good; NaN: not known
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jumbo_bo.extras import later

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

Array = npt.NDArray[np.float64]

SHARED = 10  # configurations in common that are enough
SAMPLED = 2_000  # of them that are looked at; the standard error is then below 0.03
NEIGHBOURS = 5
MOST_POINTS = 500  # of a task that are compared with their neighbours in another
MOST_ROWS = 5_000  # of a task among which neighbours are looked for


def on_shared(tasks: Sequence[tuple[Array, Array]]) -> Array:  # K pairs u, y -> rho
    """On the configurations that both have tried. NaN: fewer than SHARED of them, or constant on them."""
    rho, seen = np.eye(len(tasks)), _by_configuration(tasks)
    at = np.empty(1 + max((code.max(initial=0) for code, _ in seen), default=0))  # value of task i, by code
    for i, (code, y) in enumerate(seen):
        at.fill(np.nan)
        at[code] = y
        for j, (other, z) in enumerate(seen[:i]):
            # Codes are in the order of hashes, so the first ones are a random sample.
            shared = np.flatnonzero(~np.isnan(at[other]))[:SAMPLED]
            known = len(shared) >= SHARED
            rho[i, j] = rho[j, i] = spearman(at[other[shared]], z[shared]) if known else np.nan
    return rho


def of_neighbours(tasks: Sequence[tuple[Array, Array]]) -> Array:  # K pairs t, y -> rho
    """Between the results of one task and those of the other at the nearest configurations, both ways. It falls short
    of the true correlation where configurations are few and far between."""
    from scipy.spatial import cKDTree  # a slow import, and not everybody needs it

    rho = np.eye(len(tasks))
    rng = np.random.default_rng(0)
    rows = [rng.permutation(len(y))[:MOST_ROWS] for _, y in tasks]
    sampled = [(t[r], y[r]) for (t, y), r in zip(tasks, rows, strict=True)]
    trees = [cKDTree(t) if len(t) else None for t, _ in sampled]

    def one_way(i: int, j: int) -> float:
        (t, y), z = sampled[i], sampled[j][1]
        tree = trees[j]
        if tree is None or min(len(y), len(z)) < SHARED:
            return np.nan
        near = tree.query(t[:MOST_POINTS], min(NEIGHBOURS, len(z)))[1]
        return spearman(y[:MOST_POINTS], z[near].mean(axis=1))

    for i in range(len(tasks)):
        for j in range(i):
            rho[i, j] = rho[j, i] = (one_way(i, j) + one_way(j, i)) / 2
    return rho


def spearman(a: Array, b: Array) -> float:
    """NaN when either is constant or has fewer than two values."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    from scipy.stats import rankdata  # a slow import, and not everybody needs it

    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def _by_configuration(tasks: Sequence[tuple[Array, Array]]) -> list[tuple[npt.NDArray[np.int64], Array]]:
    """For each task its distinct configurations as codes, the same in all tasks, and the mean value of each."""
    if not tasks:
        return []
    hashes = [pl.DataFrame(u).hash_rows().to_numpy() for u, _ in tasks]
    codes = np.unique(np.concatenate(hashes), return_inverse=True)[1]
    out = []
    for code, (_, y) in zip(np.split(codes, np.cumsum([len(y) for _, y in tasks])[:-1]), tasks, strict=True):
        distinct, which, count = np.unique(code, return_inverse=True, return_counts=True)
        out.append((distinct, np.bincount(which, weights=y) / count))
    return out
