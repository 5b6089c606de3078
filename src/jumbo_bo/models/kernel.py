"""Kernels that are sums of terms over named feature blocks.

Notation
    blocks  name -> (n, p)   features of n points: '1' ones, 'x' = T(u), 'h' latent features, 'g' head predictions
    theta   (p,)             log hyperparameters: per term [log variance, log length scale per group] (matern52) or
                             [log variance per group] (linear), and at the end [log noise variance]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]
Blocks = Mapping[str, Array]

SQRT5 = math.sqrt(5.0)
SLICE = 2**18  # entries of a kernel matrix made at once where only their sums are needed: they stay in the cache


class LogNormal(NamedTuple):
    """Prior of a positive hyperparameter."""

    median: float
    sd: float  # of the logarithm


WEAK = LogNormal(1.0, 1.0)


@dataclass(frozen=True)
class Term:
    """One summand of the kernel. `groups[j]` is the hyperparameter that column j of the block uses: all zeros is
    isotropic, 0..p-1 is ARD, and one number per parameter lets the one-hot columns of a choice share theirs."""

    block: str
    kind: Literal["matern52", "linear"]
    groups: tuple[int, ...]
    variance: LogNormal = WEAK
    length: LogNormal = WEAK
    lengths: tuple[LogNormal, ...] = ()  # one per group, in place of `length`

    @property
    def n_groups(self) -> int:
        return max(self.groups) + 1

    @property
    def n_params(self) -> int:
        return self.n_groups + (self.kind == "matern52")

    def priors(self) -> list[LogNormal]:
        if self.kind == "linear":
            return [self.variance] * self.n_groups
        return [self.variance, *(self.lengths or [self.length] * self.n_groups)]


@dataclass(frozen=True)
class Kernel:
    terms: tuple[Term, ...]
    noise: LogNormal = LogNormal(1e-2, 1.5)
    mean: str | None = None  # block whose column is the prior mean; None: zero
    column: int | None = 0  # of that block; None: one of them, all equally likely before there are data

    @cached_property
    def priors(self) -> tuple[Array, Array]:  # log medians (p,), sds (p,)
        priors = [p for term in self.terms for p in term.priors()] + [self.noise]
        return np.log([p.median for p in priors]), np.array([p.sd for p in priors])

    def slices(self) -> Sequence[tuple[Term, slice]]:
        return self._slices

    @cached_property
    def _slices(self) -> Sequence[tuple[Term, slice]]:
        ends = list(accumulate((term.n_params for term in self.terms), initial=0))
        return tuple((term, slice(*ends[i : i + 2])) for i, term in enumerate(self.terms))


def isotropic(block: str, width: int, variance: LogNormal = WEAK, length: LogNormal = WEAK) -> Term:
    return Term(block, "matern52", (0,) * width, variance, length)


def ard(block: str, width: int, variance: LogNormal = WEAK, length: LogNormal = WEAK) -> Term:
    return Term(block, "matern52", tuple(range(width)), variance, length)


def cold_kernel(space: Space, per_parameter: bool = True) -> Kernel:
    """matern52(x), one length scale per parameter or a single one."""
    groups = space.groups if per_parameter else (0,) * len(space.groups)
    return Kernel((Term("x", "matern52", groups, length=usual_length(space.d)),))


def usual_length(d: int) -> LogNormal:
    """Of one of d parameters: distances grow with their number."""
    return LogNormal(0.4 * math.sqrt(d), 1.0)


def covariance(kernel: Kernel, theta: Array, a: Blocks, b: Blocks) -> Array:  # -> (n_a, n_b)
    first, *rest = (term_covariance(t, theta[s], a[t.block], b[t.block]) for t, s in kernel.slices())
    for term in rest:
        first += term
    return first


def variance(kernel: Kernel, theta: Array, a: Blocks) -> Array:  # -> (n_a,) diagonal of covariance(a, a)
    n = len(next(iter(a.values())))
    total = np.zeros(n, next(iter(a.values())).dtype)
    for term, s in kernel.slices():
        v = np.exp(theta[s]).astype(total.dtype)
        total += v[0] if term.kind == "matern52" else a[term.block] ** 2 @ v[list(term.groups)]
    return total


def prior_mean(kernel: Kernel, a: Blocks) -> Array:  # -> (n_a,); where it may be one of K columns, (n_a, K)
    first = next(iter(a.values()))
    if kernel.mean is None:
        return np.zeros(len(first), first.dtype)
    return a[kernel.mean].copy() if kernel.column is None else a[kernel.mean][:, kernel.column].copy()


def centred(kernel: Kernel, a: Blocks, y: Array) -> Array:  # (n,) -> (n,) or (n, K)
    """Observations minus their prior mean."""
    mean = prior_mean(kernel, a)
    return y - mean if mean.ndim == 1 else y[:, None] - mean


def term_covariance(term: Term, theta: Array, a: Array, b: Array) -> Array:  # (n_a, p), (n_b, p) -> (n_a, n_b)
    scale = np.exp(theta).astype(b.dtype)
    groups = list(term.groups)
    if term.kind == "linear":
        return (a * scale[groups]) @ b.T
    inverse_length = b.dtype.type(SQRT5) / scale[1:][groups]
    a, b = a * inverse_length, b * inverse_length
    r = a @ b.T
    r *= -2.0
    r += np.einsum("ij,ij->i", a, a)[:, None]
    r += np.einsum("ij,ij->i", b, b)
    np.maximum(r, 0.0, out=r)  # r now holds 5 r^2
    poly = r / 3.0
    np.sqrt(r, out=r)
    poly += r
    poly += 1.0
    np.negative(r, out=r)
    np.exp(r, out=r)
    r *= poly
    r *= scale[0]
    return r


def term_sums(term: Term, theta: Array, alpha: Array, a: Array, b: Array) -> Array:
    # (n,) or (n, g), (n, p), (m, p) -> (m,) or (m, g)
    """term_covariance(term, theta, b, a) @ alpha up to rounding, in the precision of b. The matrix is made slice by
    slice in the same memory, and of a linear term not at all."""
    if term.kind == "linear":
        return b @ (np.exp(theta)[list(term.groups)] * (alpha.T @ a)).T.astype(b.dtype)
    sums, alpha = np.empty((len(b), *alpha.shape[1:]), b.dtype), alpha.astype(b.dtype)
    for rows, k in matern_slices(term, theta, a, b):
        sums[rows] = k @ alpha
    return sums


def matern_slices(term: Term, theta: Array, a: Array, b: Array) -> Iterator[tuple[slice, Array]]:
    """Rows of b, and their covariance (rows, n) with a, up to rounding that of `term_covariance`. The next slice
    overwrites it."""
    inverse_length = SQRT5 / np.exp(theta[1:])[list(term.groups)]
    variance = np.exp(theta[0]).astype(b.dtype)  # a product of single and double precision is many times slower
    a = a * inverse_length
    columns = np.hstack([-2.0 * a, np.sum(a**2, axis=1, keepdims=True), np.ones((len(a), 1))]).T.astype(b.dtype)
    size = max(1, SLICE // len(a))
    r2, r = np.empty((2, min(size, len(b)), len(a)), b.dtype)
    for i in range(0, len(b), size):
        part = b[i : i + size] * inverse_length.astype(b.dtype)
        rows = np.hstack([part, np.ones((len(part), 1), b.dtype), np.sum(part**2, axis=1, keepdims=True)])
        k, e = r2[: len(part)], r[: len(part)]
        np.matmul(rows, columns, out=k)  # 5 r^2
        np.abs(k, out=k)  # rounding may leave less than nothing
        np.sqrt(k, out=e)
        k *= 1.0 / 3.0
        k += e
        k += 1.0
        np.negative(e, out=e)
        np.exp(e, out=e)
        k *= e
        k *= variance
        yield slice(i, i + size), k
