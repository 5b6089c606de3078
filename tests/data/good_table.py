"""A table of old runs without a fault, and its history with some cells changed."""

from __future__ import annotations

from typing import Any

import polars as pl
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "units": CategoricalDistribution([16, 32, 64]),
        "act": CategoricalDistribution(["relu", "tanh"]),
        "layers": IntDistribution(1, 4),
    }
)
GOOD: dict[str, list[Any]] = {
    "lr": [1e-4, 1e-3, 1e-2, 1e-1],
    "units": [16, 32, 64, 16],
    "act": ["relu", "tanh", "relu", "tanh"],
    "layers": [1, 2, 3, 4],
    "loss": [0.5, 2.0, 30.0, 0.1],
    "dataset": ["a", "a", "b", "b"],
}


def history(changes: dict[str, Any] | None = None, **options: Any) -> History:
    frame = pl.DataFrame({**GOOD, **(changes or {})}, strict=False)
    return History.from_frame(frame, SPACE, **{"task": "dataset", "objective": "loss", **options})
