"""A list of configurations to choose from, as points of the unit cube."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError
from jumbo_bo.space.space import GRID_LIMIT, Params, Space

Array = npt.NDArray[np.float64]

MOST_HELD = 2_048  # configurations to choose from when some parameters are fixed


def listed(candidates: Any) -> Sequence[Params]:
    """A list of dicts, or a frame (Polars, pandas, Arrow)."""
    if hasattr(candidates, "to_dicts"):
        return list(candidates.to_dicts())
    if hasattr(candidates, "to_pylist"):
        return list(candidates.to_pylist())
    if hasattr(candidates, "to_dict"):
        return list(candidates.to_dict("records"))
    return list(candidates)


def encode_candidates(space: Space, candidates: Sequence[Params]) -> Array:  # -> (N, d)
    if not 0 < len(candidates) <= GRID_LIMIT:
        raise InputError(f"a candidate list needs 1 to {GRID_LIMIT:,} rows, got {len(candidates):,}")
    rows = []
    for i, params in enumerate(candidates):
        try:
            rows.append(space.encode(params))
        except ValueError as error:
            raise InputError(f"candidate {i}: {error}") from None
    return np.array(rows)


def holding(space: Space, fixed: Mapping[str, Any], rng: np.random.Generator) -> list[Params]:
    """Configurations with these values, all of them or very many."""
    columns = [space.names.index(name) for name in fixed]
    values = [space.axes[i].encode([fixed[space.names[i]]])[0] for i in columns]
    if space.cardinality is not None and space.cardinality <= GRID_LIMIT:
        u = space.grid()
        u = u[np.all(np.abs(u[:, columns] - values) < 1e-9, axis=1)]
    else:
        u = space.sample(rng, MOST_HELD)
        u[:, columns] = values
    return [space.decode(row) | dict(fixed) for row in rng.permutation(u)[:MOST_HELD]]
