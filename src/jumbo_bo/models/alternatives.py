"""GPs that differ in their prior mean alone: which of K it is, the data tell.

Notation
    r       (K,)    probability of each mean given the data; before, all are equally likely

The covariance of the data is the same for all of them, and so is its factor: K such GPs cost little more than one. A
*family* is a list of such GPs; a GP of another kind is a family of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import log_densities, shares, solve
from jumbo_bo.models.gp import GP, Blocks, Normal, expected, extend, hallucinate, posterior
from jumbo_bo.models.kernel import centred, prior_mean, term_sums

Array = npt.NDArray[np.float64]
Said = Callable[[GP, Blocks], Normal]
Weight = TypeVar("Weight")


def probabilities(gp: GP) -> Array:  # -> r (K,)
    """Of a GP whose mean is one of K."""
    return shares(log_densities(centred(gp.kernel, gp.blocks, gp.y), gp.chol, gp.alpha))


def alternative(gp: GP, k: int) -> GP:
    """The GP with this mean."""
    return _kin(gp, replace(gp, kernel=replace(gp.kernel, column=k), alpha=gp.alpha[:, k]))


def families(gps: Iterable[tuple[Weight, GP]]) -> list[list[tuple[Weight, GP]]]:
    """Neighbours that share a factor."""
    return [list(family) for _, family in groupby(gps, key=lambda weighted: id(weighted[1].chol))]


def posteriors(family: Sequence[GP], blocks: Blocks, said: Said = posterior) -> list[Normal]:  # (m, .)
    """What each says; their doubt is the same."""
    first, *others = family
    mean, sd = said(first, blocks)
    return [Normal(mean, sd), *(Normal(other, sd) for other in _means(others, blocks))]


def expectations(family: Sequence[GP], blocks: Blocks) -> list[Array]:  # (m, .) -> (m,) each
    first, *others = family
    return [expected(first, blocks), *_means(others, blocks)]


def with_pending(family: Sequence[GP], pending: Blocks) -> list[GP]:
    """`hallucinate`, with one factor for all."""
    known = hallucinate(family[0], pending)
    if known is family[0]:
        return list(family)
    others = _means(family[1:], pending)
    return [known, *(_told(known, gp, np.append(gp.y, y)) for gp, y in zip(family[1:], others, strict=True))]


def extended(family: Sequence[GP], new: Blocks, y: Array) -> list[GP]:  # (k, .), (k,)
    """`extend` by k observations, with one factor for all."""
    known = extend(family[0], new, np.append(family[0].y, y))
    return [known, *(_told(known, gp, np.append(gp.y, y)) for gp in family[1:])]


def _means(gps: Sequence[GP], blocks: Blocks) -> Array:  # (m, .) -> (g, m)
    """Of GPs that share a factor, from one pass over the kernel."""
    if not gps:
        return np.zeros((0, len(next(iter(blocks.values())))))
    mean, alpha = np.array([prior_mean(gp.kernel, blocks) for gp in gps]), np.array([gp.alpha for gp in gps]).T
    for t, s in gps[0].kernel.slices():
        mean += term_sums(t, gps[0].theta[s], alpha, gps[0].blocks[t.block], blocks[t.block]).T
    return mean


def _told(known: GP, gp: GP, y: Array) -> GP:
    """The GP with the data and the factor of a `known` one, and these values."""
    alpha = solve(known.chol, centred(gp.kernel, known.blocks, y))
    return _kin(known, replace(known, kernel=gp.kernel, y=y, alpha=alpha))


def _kin(gp: GP, other: GP) -> GP:
    other.__dict__["root"] = gp.root  # known already
    return other
