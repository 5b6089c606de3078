"""A benchmark problem: what is known before the first trial, what a trial returns, and how far a configuration is
from the optimum. Only the runner sees `regret`; an optimizer never does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from jumbo_bo.data.history import History
from jumbo_bo.space.space import Params, Space

Objective = Callable[[Params, np.random.Generator], float]


@dataclass(frozen=True)
class Problem:
    name: str
    space: Space
    history: History
    objective: Objective  # one noisy trial, in the user's units
    regret: Callable[[Params], float]  # noise-free distance to the optimum, >= 0
    direction: Literal["minimize", "maximize"] = "minimize"
    unit: float = 1.0  # tables show regret in multiples of this
    floor: float = 1e-12  # regrets below it count as this in logarithms
    candidates: Sequence[Params] | None = None  # what there is to choose from, when it is not the whole space
    landmarks: Mapping[str, float] = field(default_factory=dict)  # regrets of what is known without a trial

    def __post_init__(self) -> None:
        if self.direction not in ("minimize", "maximize"):
            raise ValueError(f"direction is {self.direction!r}, expected 'minimize' or 'maximize'")
        if not (self.unit > 0 and self.floor > 0):
            raise ValueError(f"{self.name}: unit and floor must be positive, got {self.unit} and {self.floor}")
