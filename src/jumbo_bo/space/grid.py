"""Every configuration of a finite space that meets its constraints, found without looking at all the others.

One parameter after the other is added to what is possible so far; what no further choice can save is dropped at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from jumbo_bo.space.axes import Array, Axis, centres
from jumbo_bo.space.constraints import Rule
from jumbo_bo.space.sums import Sums, numbers

MOST = 12_000_000  # numbers held at once

Ask = Callable[[Rule, Array], npt.NDArray[np.bool_]]  # of u (m, d): a rule that is no sum


def grid_of(axes: Sequence[Axis], names: Sequence[str], sums: Sums, asked: Sequence[Rule], ask: Ask) -> Array | None:
    """(N, d), the last parameter fastest. None when it is too large to be found this way."""
    d = len(axes)
    ends = np.stack([sums.x(sums.first[None])[0] * sums.c, sums.x(sums.last[None])[0] * sums.c])  # (2, r, d)
    least = np.cumsum(ends.min(axis=0)[:, ::-1], axis=1)[:, ::-1]  # of this column and all after it
    most = np.cumsum(ends.max(axis=0)[:, ::-1], axis=1)[:, ::-1]
    least, most = np.pad(least, ((0, 0), (0, 1))), np.pad(most, ((0, 0), (0, 1)))
    u, total = np.full((1, d), 0.5), np.zeros((1, len(sums)))
    for i, axis in enumerate(axes):
        if axis.levels is None or len(u) * axis.levels * d > MOST:
            return None
        values = centres(axis)
        u = np.repeat(u, len(values), axis=0)
        u[:, i] = np.tile(values, len(u) // len(values))
        total = np.repeat(total, len(values), axis=0)
        if len(sums):
            part = numbers(axis, values)[:, None] * sums.c[:, i]
            total = total + np.tile(part, (len(u) // len(values), 1))
        low, high = sums.low - sums.tol - most[:, i + 1], sums.high + sums.tol - least[:, i + 1]
        keep = ((total >= low) & (total <= high)).all(axis=1)
        u, total = u[keep], total[keep]
        for rule in asked:
            if max(map(names.index, rule.names)) == i and len(u):
                keep = ask(rule, u)
                u, total = u[keep], total[keep]
    return u
