"""Other hyperparameters that explain the trials about as well: the GP without the pretence that one fit is the truth.

Notation
    theta   (p,) log hyperparameters; their prior is normal, N(median, sd^2)
    nu      (p,) an independent draw from that prior, around its median

Elliptical slice sampling (Murray, Adams and MacKay, 2010): a step goes to a point of the ellipse through theta and nu
that is likely enough. It needs no gradient and no step size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.evidence import semidefinite_root
from jumbo_bo.models.gp import GP, Blocks, build, joint_posterior

Array = npt.NDArray[np.float64]

STEPS = 3  # between two draws


def plausible(gp: GP, n: int, rng: np.random.Generator) -> Iterator[GP]:
    """n draws of the GP, with hyperparameters from their posterior; the chain starts at those of `gp`."""
    for _ in range(n):
        for _ in range(STEPS):
            gp = _step(gp, rng)
        yield gp


def samples(gp: GP, points: Blocks, n: int, rng: np.random.Generator) -> Array:  # (m, .) -> (m, n)
    """Joint samples of the function at these points."""
    mean, cov = joint_posterior(gp, points)
    return mean[:, None] + semidefinite_root(cov) @ rng.standard_normal((len(mean), n))


def _step(gp: GP, rng: np.random.Generator) -> GP:
    median, sd = gp.kernel.priors
    here, nu = gp.theta - median, sd * rng.standard_normal(len(sd))
    least = gp.log_likelihood + math.log(1.0 - rng.random())
    angle = rng.uniform(0.0, 2 * math.pi)
    low, high = angle - 2 * math.pi, angle
    while True:
        theta = median + here * math.cos(angle) + nu * math.sin(angle)
        other = build(gp.kernel, theta, gp.blocks, gp.y)
        if other.log_likelihood >= least or high - low < 1e-9:
            return other
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)
