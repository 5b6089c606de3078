"""Maximum a posteriori hyperparameters under independent Gaussian priors.

Notation
    theta     (p,)       hyperparameters, usually logarithms
    mean, sd  (p,), (p,) of their prior
    evidence  theta -> log p(y | theta), gradient (p,)
    loss      -log p(y | theta) p(theta), up to a constant
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Evidence = Callable[[Array], tuple[float, Array]]

TOLERANCE = {"gtol": 1e-2, "ftol": 1e-7}  # of an evidence whose every value costs a Cholesky factor
STRETCH = 4.0  # sd of the prior: as good as forever. Where the likelihood is flat L-BFGS may run far off.


def maximum_a_posteriori(
    evidence: Evidence,
    mean: Array,
    sd: Array,
    starts: Sequence[Array] = (),
    lowest: float = -np.inf,
    options: Mapping[str, float] | None = None,
) -> Array:  # -> theta (p,)
    """The best that L-BFGS finds from `starts` (default: the prior's mean). No entry goes below `lowest`; `options` are
    those of scipy's L-BFGS-B."""
    from scipy.optimize import minimize  # a slow import, and a first suggestion does not need it

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = evidence(theta)
        pull = (theta - mean) / sd
        return -value + 0.5 * float(pull @ pull), -gradient + pull / sd

    bounds = list(zip(np.maximum(mean - STRETCH * sd, lowest), mean + STRETCH * sd, strict=True))
    how = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
    found = [minimize(loss, start, **how) for start in starts or (mean,)]
    theta: Array = min(found, key=lambda result: result.fun).x
    return theta
