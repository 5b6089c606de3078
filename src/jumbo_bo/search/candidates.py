"""A list of configurations to choose from, as points of the unit cube."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError
from jumbo_bo.space.space import GRID_LIMIT, Params, Space

Array = npt.NDArray[np.float64]


def listed(candidates: Any) -> Sequence[Params]:
    """A list of dicts, or a frame (Polars, pandas, Arrow)."""
    if hasattr(candidates, "to_dicts"):
        return list(candidates.to_dicts())
    if hasattr(candidates, "to_pylist"):
        return list(candidates.to_pylist())
    if hasattr(candidates, "to_dict"):
        return list(candidates.to_dict("records"))
    return list(candidates)


def allowed_of(space: Space, given: Any) -> tuple[list[Params] | None, Array | None]:  # -> N of them, u (N, d)
    """The candidates that meet the constraints of the space; None when there is no list."""
    if given is None:
        return None, None
    candidates = listed(given)
    u = encode_candidates(space, candidates)
    keep = np.flatnonzero(space.allowed(u)).tolist()
    if not keep:
        raise InputError(
            f"none of the {len(candidates):,} candidates meets the constraints; the first one does not meet "
            f"{space.broken(candidates[0])[0]!r}"
        )
    return [dict(candidates[i]) for i in keep], u[keep]


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
