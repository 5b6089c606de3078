"""One old task: its rows on the unit cube, oriented so that larger is better. See history.py for the notation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jumbo_bo.data.cells import LARGEST
from jumbo_bo.data.warp import Warp, fit_warp
from jumbo_bo.errors import InputError
from jumbo_bo.extras import later
from jumbo_bo.space.space import Array

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it


@dataclass(frozen=True, eq=False)
class Task:
    name: str
    u: Array  # (n, d)
    y: Array  # (n,)
    failed: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (f, d); of any shape when empty
    of: tuple[int, int] = (0, 0)  # rows with and without a value that these were drawn from; at least as many as these

    def __post_init__(self) -> None:
        u, y = _frozen(self.u), _frozen(self.y)
        if u.ndim != 2 or y.shape != u.shape[:1]:
            raise InputError(f"task {self.name!r} needs u (n, d) and y (n,), got {u.shape} and {y.shape}")
        failed = _frozen(self.failed) if np.size(self.failed) else np.zeros((0, u.shape[1]))
        if failed.shape[1:] != u.shape[1:]:
            raise InputError(f"task {self.name!r} needs failed (f, {u.shape[1]}), got {failed.shape}")
        inside = [np.all((points >= 0) & (points <= 1)) for points in (u, failed)]
        if not (all(inside) and np.all(np.abs(y) <= LARGEST)):
            raise InputError(f"task {self.name!r} needs u and failed in [0, 1] and finite y")
        for name, array in (("u", u), ("y", y), ("failed", failed)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "of", (max(len(y), self.of[0]), max(len(failed), self.of[1])))

    @property
    def sampled(self) -> bool:
        return self.of != (len(self.y), len(self.failed))

    @cached_property
    def warp(self) -> Warp:
        return fit_warp(self.y)

    @cached_property
    def z(self) -> Array:  # -> (n,)
        return self.warp(self.y)

    @property
    def constant(self) -> bool:
        return len(self.y) > 1 and bool(np.all(self.y == self.y[0]))

    @cached_property
    def repeats(self) -> int:
        """Rows whose configuration appeared before."""
        n = len(self.y)
        if n == 0 or pl.Series(self.u[:, 0]).n_unique() == n:  # one continuous parameter tells them all apart
            return 0
        return n - pl.DataFrame(self.u).n_unique()


def merged(tasks: Iterable[Task]) -> list[Task]:
    """Those of one name become one."""
    by_name: dict[str, list[Task]] = {}
    for t in tasks:
        by_name.setdefault(t.name, []).append(t)
    return [same[0] if len(same) == 1 else _joined(same) for same in by_name.values()]


def _joined(tasks: list[Task]) -> Task:
    u, y, failed = (np.concatenate([getattr(t, part) for t in tasks]) for part in ("u", "y", "failed"))
    rows, without_value = (sum(t.of[i] for t in tasks) for i in (0, 1))
    return Task(tasks[0].name, u, y, failed, (rows, without_value))


def _frozen(numbers: Array) -> Array:
    """A copy, unless nobody can change it: frozen also means the numbers."""
    owned = isinstance(numbers, np.ndarray) and numbers.base is None and not numbers.flags.writeable
    return numbers if owned and numbers.dtype == np.float64 else np.array(numbers, dtype=float)
