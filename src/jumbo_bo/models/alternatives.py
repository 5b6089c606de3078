"""GPs that differ in their prior mean alone: which of K it is, the data tell.

Notation
    r       (K,)    probability of each mean given the data; before, all are equally likely

The covariance of the data is the same for all of them, and so is its factor: K such GPs cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import log_densities, shares, solve
from jumbo_bo.models.gp import GP, Blocks, expected, hallucinate
from jumbo_bo.models.kernel import Kernel, centred

Array = npt.NDArray[np.float64]


def alternatives(gp: GP) -> list[tuple[float, GP]]:
    """Of a GP whose mean is one of K: r, and the GP with this mean."""
    r = shares(log_densities(centred(gp.kernel, gp.blocks, gp.y), gp.chol, gp.alpha))
    return [(float(p), _like(gp, replace(gp.kernel, column=k), gp.y)) for k, p in enumerate(r)]


def with_pending(gps: Sequence[GP], pending: Blocks) -> list[GP]:
    """`hallucinate` of GPs that share a factor: it is extended once."""
    first, *rest = gps
    known = hallucinate(first, pending)
    if known is first:
        return list(gps)
    return [known, *(_like(known, gp.kernel, np.concatenate([gp.y, expected(gp, pending)])) for gp in rest)]


def _like(gp: GP, kernel: Kernel, y: Array) -> GP:
    """The GP with another mean or other values."""
    other = replace(gp, kernel=kernel, y=y, alpha=solve(gp.chol, centred(kernel, gp.blocks, y)))
    other.__dict__["root"] = gp.root  # known already
    return other
