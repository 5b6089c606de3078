"""Several goals: which points no other one beats, the volume that they dominate, and what another one adds to it.

Notation, larger is better in every goal
    f       (n, k) points; one dominates another when it is at least as good in every goal, and better in one
    r       (k,)   the reference point: only what is better than it in every goal counts
    front   those of the points that no other one dominates
    HV      the volume of {y > r: some point is at least as good in every goal}
    l, h    (b, k) corners of disjoint boxes that make up all of {y > r} that no point dominates; h may be infinite
    HVI     what HV gains by one more point: it is the volume of the part of each box below that point
    E HVI   = sum_b prod_k (EI_k(l_bk) - EI_k(h_bk)), EI_k(a) = E max(f_k - a, 0), for goals that are independent of
            each other, whatever the distribution of each (with normal ones: Emmerich, Yang, Deutz, Wang and Fonseca, 'A
            multicriteria generalization of Bayesian global optimization', 2016)
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BEYOND = 0.1  # of the front's extent: how far the reference point lies behind the worst of it
LOWEST = -1e6  # a logarithm of nothing, to be compared


def undominated(f: Array) -> Mask:  # (n, k) -> (n,)
    """Of equal points the first one."""
    n = len(f)
    kept = np.ones(n, dtype=bool)
    for i in np.lexsort(f.T[::-1])[::-1]:  # the best in the first goal first: it removes most
        if kept[i]:
            beaten = np.all(f <= f[i], axis=1)
            equal = np.flatnonzero(beaten & np.all(f == f[i], axis=1))
            kept[beaten] = False
            kept[equal[0]] = True
    return kept


def boxes(front: Array, r: Array) -> tuple[Array, Array]:  # (n, k), (k,) -> l (b, k), h (b, k)
    """Slices between the values of the last goal, each cut up in the other goals. n + 1 boxes for two goals."""
    k = len(r)
    front = front[np.all(front > r, axis=1)]
    if len(front) == 0:
        return r[None].copy(), np.full((1, k), np.inf)
    if k == 1:
        return np.maximum(r, front.max(axis=0))[None], np.full((1, 1), np.inf)
    levels = np.concatenate([[r[-1]], np.unique(front[:, -1]), [np.inf]])
    low: list[Array] = []
    high: list[Array] = []
    for below, above in itertools.pairwise(levels):
        others = front[front[:, -1] >= above, :-1]
        inner = boxes(others[undominated(others)], r[:-1])
        for parts, end, found in zip((low, high), (below, above), inner, strict=True):
            parts.append(np.column_stack([found, np.full(len(found), end)]))
    return np.vstack(low), np.vstack(high)


def hypervolume(f: Array, r: Array) -> float:  # (n, k), (k,)
    """HV, by the same slices."""
    f = f[np.all(f > r, axis=1)]
    if len(f) == 0:
        return 0.0
    if len(r) == 1:
        return float(f.max() - r[0])
    levels = np.concatenate([[r[-1]], np.unique(f[:, -1])])
    total = 0.0
    for below, above in itertools.pairwise(levels):
        others = f[f[:, -1] >= above, :-1]
        total += (above - below) * hypervolume(others[undominated(others)], r[:-1])
    return float(total)


def reference(f: Array) -> Array:  # (n, k) -> (k,)
    """A little behind the worst of the front; in a goal in which the front has no extent, behind the worst of all."""
    front = f[undominated(f)]
    known = np.where(np.ptp(front, axis=0) > 0, front.min(axis=0), f.min(axis=0))
    extent = front.max(axis=0) - known
    return np.asarray(known - BEYOND * np.where(extent > 0, extent, 1.0))


def log_expected(low: list[Array], high: list[Array]) -> Array:  # of each goal (b, m) -> (m,)
    """log E HVI, from log EI_k at the corners of the boxes; -inf at an infinite corner."""
    parts = [_log_difference(a, b) for a, b in zip(low, high, strict=True)]
    return np.asarray(np.maximum(np.logaddexp.reduce(np.sum(parts, axis=0)), LOWEST))


def _log_difference(a: Array, b: Array) -> Array:
    """log(exp(a) - exp(b)) for a >= b."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = a + np.log1p(-np.exp(np.minimum(b - a, 0.0)))
    return np.where(np.isneginf(a), -np.inf, found)
