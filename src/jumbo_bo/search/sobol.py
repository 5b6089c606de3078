"""Scrambled Sobol' points, the same to the bit as those of `scipy.stats.qmc.Sobol`, whose import takes longer than all
else that a first suggestion needs.

Notation
    v       (d, BITS)        direction numbers: point i + 1 = point i XOR v[:, lowest zero bit of i]
    lower   (d, BITS, BITS)  random lower triangular matrices modulo two, unit diagonal: Matousek's linear scramble
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy

from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint32]

BITS = 30  # as in SciPy
POWERS = 1 << np.arange(BITS, dtype=np.uint32)
NUMBERS = Path(scipy.__file__).parent / "stats" / "_sobol_direction_numbers.npz"  # of Joe and Kuo


def sobol(d: int, n: int, rng: np.random.Generator) -> Array:  # -> (n, d), n a power of two
    if not NUMBERS.exists():  # another SciPy keeps them elsewhere
        from scipy.stats import qmc

        points: Array = qmc.Sobol(d, rng=rng).random(n)
        return points
    (own,) = rng.spawn(1)
    shift = own.integers(2, size=(d, BITS), dtype=np.uint32) @ POWERS
    lower = np.tril(own.integers(2, size=(d, BITS, BITS), dtype=np.uint32), -1) + np.eye(BITS, dtype=np.uint32)
    v = scrambled(directions(d), lower)
    lowest_zero = [(~i & (i + 1)).bit_length() - 1 for i in range(n - 1)]
    whole = np.bitwise_xor.accumulate(np.vstack([shift[None], v.T[lowest_zero]]), axis=0)
    return whole * 2.0**-BITS


def over(space: Space, n: int, rng: np.random.Generator) -> Array:  # -> (n, d), n a power of two
    """Configurations that are spread over all that may be tried: Sobol' points, or, of a space with constraints, as
    many drawn at random."""
    return space.sample(rng, n) if space.constraints else space.snap(sobol(space.d, n, rng))


def scrambled(v: Bits, lower: Bits) -> Bits:
    """The bits of each number, the most significant first, times the matrix of its dimension."""
    bits = (v[:, None, :] >> np.arange(BITS - 1, -1, -1, dtype=np.uint32)[:, None]) & 1  # (d, bit, number)
    mixed: Bits = np.einsum("dbk,b->dk", (lower @ bits) & 1, POWERS[::-1])
    return mixed.astype(np.uint32)


@cache
def directions(d: int) -> Bits:  # -> (d, BITS)
    """Joe and Kuo, 'Constructing Sobol sequences with better two-dimensional projections' (2008)."""
    with np.load(NUMBERS) as file:
        polynomials, first = file["poly"][:d], file["vinit"][:d]
    v = np.ones((d, BITS), dtype=np.int64)
    for row, polynomial, start in zip(v[1:], polynomials[1:].tolist(), first[1:], strict=True):
        degree = polynomial.bit_length() - 1
        row[:degree] = start[:degree]
        for j in range(degree, BITS):
            row[j] = row[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    row[j] ^= row[j - k] << k
    return (v * POWERS[::-1]).astype(np.uint32)
