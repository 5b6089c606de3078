"""`Past`: what a method has learned from the old runs, once, before the first trial. A frozen value that can be saved.

Notation
    t       (m, D)  T(u) of m points
    blocks  name -> (m, .), what was learned as features of these points

A subclass is a frozen dataclass. Its fields may be arrays, numbers, texts, tuples, mappings by text, and dataclasses
or named tuples of these: then `save` and `load` need nothing more (past_file.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning import past_file
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Past:
    space_fingerprint: str
    tasks: tuple[str, ...]  # the old tasks that it speaks of
    warps: tuple[Warp, ...]  # how the values of each are distributed

    @classmethod
    def of(cls, history: History, **learned: Any) -> Self:
        """With the facts that every past has."""
        tasks = history.tasks
        return cls(
            space_fingerprint=history.space.fingerprint,
            tasks=tuple(task.name for task in tasks),
            warps=tuple(task.warp for task in tasks),
            **learned,
        )

    @property
    def empty(self) -> bool:
        """Nothing could be learned."""
        return False

    def blocks(self, t: Array) -> Mapping[str, Array]:  # (m, D) -> name -> (m, .)
        """Computed once per point."""
        return {}

    def save(self, path: str | Path) -> None:
        """Writes one file. A reader sees the old file or the whole new one, never half of it."""
        past_file.save(self, path)

    @classmethod
    def load(cls, path: str | Path, space: Space) -> Self:
        """Reads what `save` wrote, for the space it was learned for."""
        return past_file.load(cls, path, space)
