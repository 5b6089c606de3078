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


def points(space: Space, configurations: Sequence[Params]) -> set[bytes]:
    return {space.encode(params).tobytes() for params in configurations}


def agrees(space: Space, params: Params, fixed: Mapping[str, Any]) -> bool:
    """Whether a configuration has these values, where they exist."""
    axes = dict(zip(space.names, space.axes, strict=True))
    pairs = [(axes[name].encode([params[name], fixed[name]])) for name in fixed if name in space.active(params)]
    return all(abs(a - b) < 1e-9 for a, b in pairs)


def having(space: Space, candidates: Sequence[Params], fixed: Mapping[str, Any]) -> list[Params]:
    """Those with these values, where they exist."""
    found = [dict(params) for params in candidates if agrees(space, params, fixed)]
    if not found:
        raise InputError(f"none of the candidates has {dict(fixed)}")
    return found


def holding(
    space: Space, fixed: Mapping[str, Any], rng: np.random.Generator, candidates: Sequence[Params] | None = None
) -> list[Params]:
    """Configurations that may be tried with these values, all of them or very many. A fixed value of a parameter that
    does not exist in a configuration is not in it."""
    if candidates is not None:
        return having(space, candidates, fixed)
    if space.constraints:
        return space.completions(dict(fixed), rng, MOST_HELD)
    columns = [space.names.index(name) for name in fixed]
    values = [space.axes[i].encode([fixed[space.names[i]]])[0] for i in columns]
    if space.cardinality is not None and space.cardinality <= GRID_LIMIT:
        u = space.grid()
        u = u[np.all((np.abs(u[:, columns] - values) < 1e-9) | ~space.there(u)[:, columns], axis=1)]
    else:
        u = rng.random((MOST_HELD, space.d))
        u[:, columns] = values  # before it is known which parameters exist
    return [space.present(space.decode(row) | dict(fixed)) for row in rng.permutation(u)[:MOST_HELD]]
