"""What a GP says of a fixed list of points, updated as pending trials join: expectations stay, doubt shrinks.

Notation
    n, p, m     finished trials, pending ones, points
    k           (n, m) covariance of the finished trials with the points
    [A B]       (p, n + p) the last rows of L^-1 of all trials, see gp.py
    v           (p, m) = A k + B k(pending, points); the variance of the points falls by the sum of its squares
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.gp import GP, Blocks, Normal, covariance, posterior

Array = npt.NDArray[np.float64]


class Seen(NamedTuple):
    blocks: Blocks
    known: Normal  # of the points, before anything is pending
    k: Array


def seen(gp: GP, blocks: Blocks) -> Seen:  # (m, .)
    return Seen(blocks, posterior(gp, blocks), covariance(gp.kernel, gp.theta, gp.blocks, blocks))


def joined(gp: GP, before: Seen) -> Normal:  # -> mean (m,), sd (m,)
    """The posterior of the GP that `hallucinate` made of the one seen, up to rounding, in p (n + p) m steps in place of
    (n + p)^2 m."""
    n = len(before.k)
    new, rows = {t.block: gp.blocks[t.block][n:] for t in gp.kernel.terms}, gp.root[n:]
    v = rows[:, :n] @ before.k + rows[:, n:] @ covariance(gp.kernel, gp.theta, new, before.blocks)
    mean, sd = before.known
    return Normal(mean, np.sqrt(np.maximum(sd**2 - np.einsum("ij,ij->j", v, v), 1e-12)))
