"""What the model says of each parameter: how much it matters, and how the value follows it.

Notation
    f       (N, s) joint samples of the function from the model's posterior, on the scale of z
    a, b    (N, d) points spread over the space; a_i is a with coordinate i taken from b
    share   E[(f(a) - f(a_i))^2] / (2 Var f): what part of the differences between values parameter i has a hand in,
            alone or together with others (the total index of Sobol', as Jansen, 1999, estimates it)

A share is computed for each sample of the function, each with hyperparameters drawn from their posterior, so its
interval is as wide as the trials leave it in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import semidefinite_root
from jumbo_bo.models.gp import GP, joint_posterior
from jumbo_bo.models.plausible import plausible
from jumbo_bo.search.argmax import Domain, sobol
from jumbo_bo.space.axes import centres
from jumbo_bo.space.space import Params, Space

if TYPE_CHECKING:
    from jumbo_bo.explain import Prediction
    from jumbo_bo.optimizer import Optimizer

Array = npt.NDArray[np.float64]

FITS = 8  # hyperparameters that are tried, of all GPs together
SAMPLES = 16  # of the function, for each of them
POINTS = 1_024  # where a function is sampled, at most; 16 per parameter and one more at least
FEWEST = 3  # values from which there is something to say
ALONG = 41  # points of a slice


class Importance(NamedTuple):
    """Of one parameter; shares of parameters that act together overlap."""

    name: str
    share: float  # median
    low: float  # 90 % interval
    high: float


@dataclass(frozen=True, eq=False)
class Slice:
    """The value along one parameter, with all others as in one configuration."""

    name: str
    u: Array  # (n,) places on the axis
    values: tuple[Any, ...]  # n of the parameter
    predicted: tuple[Prediction, ...]  # n
    old: Array  # (n,) what the old tasks expect on average, on the scale of the new trials; empty when unknown


def importance(optimizer: Optimizer) -> list[Importance]:
    """The most important parameter first; none before the third value, or without a model."""
    view = optimizer.view()
    surrogate = optimizer.recipe.surrogate(view) if len(view.z) >= FEWEST else None
    if surrogate is None or not surrogate.gps:
        return []
    rng, space, found = np.random.default_rng([view.seed, len(view.z), 2]), optimizer.space, []
    for weight, gp in surrogate.gps:
        for other in plausible(gp, max(1, round(FITS * weight)), rng):
            found += [(weight / max(1, round(FITS * weight)), row) for row in _shares(other, view.domain, space, rng)]
    weights, shares = np.array([w for w, _ in found]), np.array([row for _, row in found])
    low, middle, high = (_quantile(shares, weights, q) for q in (0.05, 0.5, 0.95))
    made = [Importance(*row) for row in zip(space.names, *(v.tolist() for v in (middle, low, high)), strict=True)]
    return sorted(made, key=lambda i: -i.share)


def _shares(gp: GP, domain: Domain, space: Space, rng: np.random.Generator) -> Array:  # -> (s, d)
    d = space.d
    n = max(16, 1 << (POINTS // (d + 1)).bit_length() - 1)  # a power of two, for Sobol' points
    both = sobol(2 * d, n, rng)
    a, b = space.snap(both[:, :d]), space.snap(both[:, d:])
    moved = np.repeat(a[None], d, axis=0)  # (d, n, d)
    moved[np.arange(d), :, np.arange(d)] = b.T
    mean, cov = joint_posterior(gp, domain.featurise(np.vstack([a, moved.reshape(d * n, d)])))
    f = mean[:, None] + semidefinite_root(cov) @ rng.standard_normal((len(mean), SAMPLES))
    first, others = f[:n], f[n:].reshape(d, n, SAMPLES)
    variance = f.var(axis=0)
    change = ((others - first) ** 2).mean(axis=1) / 2.0  # (d, s)
    return np.asarray((change / np.where(variance > 0, variance, 1.0)).T)


def _quantile(rows: Array, weights: Array, q: float) -> Array:  # (m, d), (m,) -> (d,)
    order = np.argsort(rows, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= q * weights.sum()
    return np.asarray(np.take_along_axis(rows, order, axis=0)[reached.argmax(axis=0), np.arange(rows.shape[1])])


def slices(optimizer: Optimizer, at: Mapping[str, Any], names: Sequence[str]) -> list[Slice]:
    """Of these parameters, through the configuration `at`."""
    space = optimizer.space
    everywhere = zip(space.names, space.axes, space.encode(at).tolist(), strict=True)  # parameters that exist elsewhere
    known = {name: axis.decode(u) for name, axis, u in everywhere} | dict(at)
    places = [_places(space, space.names.index(name)) for name in names]
    params: list[Params] = [known | {n: v} for n, some in zip(names, places, strict=True) for _, v in some]
    if not params:
        return []
    predicted, old = optimizer.predict(params), _old_runs(optimizer, np.array([space.encode(p) for p in params]))
    found, start = [], 0
    for name, some in zip(names, places, strict=True):
        rows, start = slice(start, start + len(some)), start + len(some)
        u, values = np.array([u for u, _ in some]), tuple(v for _, v in some)
        found.append(Slice(name, u, values, tuple(predicted[rows]), old[rows]))
    return found


def _places(space: Space, i: int) -> list[tuple[float, Any]]:
    """Places on an axis with their values: all of few, some of many."""
    axis = space.axes[i]
    if axis.levels is not None and axis.levels <= ALONG:
        return [(u, axis.decode(u)) for u in centres(axis).tolist()]
    places = dict.fromkeys(axis.snap(np.linspace(0.0, 1.0, ALONG)).tolist())
    return [(u, axis.decode(u)) for u in places]


def _old_runs(optimizer: Optimizer, u: Array) -> Array:  # (n, d) -> (n,)
    """The old tasks' average, moved so that over the trials it is right on average."""
    view = optimizer.view()
    blocks = {} if optimizer.past is None else view.domain.featurise(np.vstack([u, view.u]))
    if "m" not in blocks:
        return np.zeros(0)
    expected, there = np.split(blocks["m"][:, 0], [len(u)])
    sign = -1.0 if optimizer.direction == "minimize" else 1.0
    return np.asarray(sign * optimizer._finished().warp.inverse(expected + view.z.mean() - there.mean()))
