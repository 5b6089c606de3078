"""Three models of the new problem: one more of the kind of the old tasks, much like one of them, or like nothing seen
before.

    population  mean m,                      constant + linear(m) + linear(dev) + matern52(x)
    one of them mean one column of heads,    constant + matern52(x)
    alone       mean 0,                      constant + matern52(x)

Notation
    K       old tasks
    heads   (n, K)  what is predicted for each of them
    m       (n, 1)  their average
    dev     (n, K)  (predictions - m) / sqrt(K - 1): dev dev^T is their sample covariance

The first takes the new problem as one more draw from where the old ones come from: their mean, their covariance (one
amplitude for all), a slope of the mean, as its values may vary more or less than theirs, and on x what none of them
knows. The second is for old tasks of mixed relevance: before the first trial every old task is as likely as any other
to be the one, then the trials tell, and those that are unlike the new problem soon have no say. The constant is wide
and the same in all: the level of the new values is for the trials to say, and takes no part in the comparison.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jumbo_bo.models.kernel import Kernel, LogNormal, Term, cold_kernel
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

# In units of the objective's standard deviation, squared. None of these was measured against others: the old tasks
# correct all but the first (learning/priors.py).
LEVEL = Term("1", "linear", (0,), variance=LogNormal(4.0, 0.3))
SLOPE = Term("m", "linear", (0,), variance=LogNormal(0.1, 1.0))
RESIDUAL = LogNormal(0.3, 1.0)


def alone(space: Space) -> Kernel:
    return Kernel((LEVEL, *cold_kernel(space).terms))


def population(space: Space, columns: int) -> Kernel:
    """`columns` of the block dev; one old task has no covariance, then it is 0."""
    (x,) = cold_kernel(space).terms
    covariance = (Term("dev", "linear", (0,) * columns),) if columns else ()
    return Kernel((LEVEL, SLOPE, *covariance, replace(x, variance=RESIDUAL)), mean="m")


def one_of_them(informed: Kernel) -> Kernel:
    """From `population` with the priors it has: how far the new problem lies from the one old task is not learned."""
    terms = {term.block: term for term in informed.terms}
    return Kernel((terms["1"], replace(terms["x"], variance=RESIDUAL)), informed.noise, mean="heads", column=None)


def informed(kernel: Kernel, prior: Array | None) -> Kernel:  # (2, p): log medians, sds
    """The kernel with these priors of its hyperparameters; without any, as it is."""
    if prior is None:
        return kernel
    each = [LogNormal(float(np.exp(median)), float(sd)) for median, sd in prior.T]
    terms = []
    for term, s in kernel.slices():
        variance, *lengths = each[s]
        terms.append(replace(term, variance=variance, lengths=tuple(lengths)))
    return replace(kernel, terms=tuple(terms), noise=each[-1])
