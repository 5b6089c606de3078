"""Models of what is measured with every trial beside its value. They follow the trials.

Each is an optimizer of its quantity that is never asked: the same method, old runs of its own, other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History, Task
from jumbo_bo.known import Known, Remembered
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Recipe, View
from jumbo_bo.models.gp import Blocks
from jumbo_bo.trials import Trial

Array = npt.NDArray[np.float64]


class Named(Protocol):
    """A quantity. Times `sign`, larger values are better."""

    @property
    def name(self) -> str: ...
    @property
    def direction(self) -> Literal["minimize", "maximize"]: ...
    @property
    def sign(self) -> float: ...


class Model(Protocol):
    """What is used of an optimizer."""

    recipe: Recipe

    @property
    def past(self) -> Past | None: ...
    @property
    def best(self) -> object | None: ...
    def tell(self, suggestion: Mapping[str, Any], value: float) -> None: ...
    def view(self) -> View: ...
    def restarted(self) -> Model: ...


@dataclass
class Quantity:
    about: Named
    model: Model

    def blocks(self, x: Array) -> dict[str, Array]:
        """What was learned of it from the old runs, for the domain of the objective: under names of its own."""
        past = self.model.past
        return {} if past is None else {self._name(name): block for name, block in past.blocks(x).items()}

    @property
    def known(self) -> bool:
        return self.model.past is not None or self.model.best is not None

    def own(self, blocks: Blocks) -> Blocks:
        """Of the blocks of the objective's domain, those that this quantity's models ask for."""
        shared = {name: blocks[name] for name in ("1", "x")}
        prefix = self._name("")
        return shared | {name.removeprefix(prefix): b for name, b in blocks.items() if name.startswith(prefix)}

    def _name(self, block: str) -> str:
        return f"{type(self.about).__name__} {self.about.name}: {block}"


class Quantities:
    """`make` makes the model of one."""

    kind: type[Quantity] = Quantity

    def __init__(self, about: Sequence[Any], make: Callable[[Any], Model]) -> None:
        self.about, self._make = tuple(about), make
        self._quantities: list[Any] | None = None
        self._followed: list[Trial] = []

    def __bool__(self) -> bool:
        return bool(self.about)

    @property
    def quantities(self) -> list[Any]:
        if self._quantities is None:
            self._quantities = [self.kind(one, self._make(one)) for one in self.about]
        return self._quantities

    def learn(self) -> None:
        """From the old runs, if that has not been done."""
        for q in self.quantities:
            _ = q.model.past

    def blocks(self, x: Array) -> dict[str, Array]:
        return {name: block for q in self.quantities for name, block in q.blocks(x).items()}

    def anew(self) -> Self:
        """Before anything was told; what was learned from the old runs is shared."""
        fresh = type(self)(self.about, self._make)
        if self._quantities is not None:
            fresh._quantities = [self.kind(q.about, q.model.restarted()) for q in self._quantities]
        return fresh

    def follow(self, told: Sequence[Trial]) -> None:
        """All trials that were told, in order. When earlier ones have changed, it starts anew."""
        n = len(self._followed)
        if len(told) < n or any(a is not b for a, b in zip(self._followed, told, strict=False)):
            for q in self.quantities:
                q.model = q.model.restarted()
            n = 0
        for trial in told[n:]:
            for q in self.quantities:
                if q.about.name in trial.measured:
                    q.model.tell(trial.params, trial.measured[q.about.name])
        if n < len(told) or n != len(self._followed):
            self._changed()
        self._followed = list(told)

    def _changed(self) -> None:
        pass


def quantity_history(history: History, about: Named) -> History | None:
    """Old runs of a quantity, larger is better; None when they have no column of it."""
    its = history.limits.get(about.name)
    return None if its is None else oriented(its, about.direction)


def old_runs_of(history: History | Past | Remembered | None, about: Named) -> History | Remembered | None:
    if isinstance(history, Remembered):
        return history.limits.get(about.name)
    return quantity_history(history, about) if isinstance(history, History) else None


def oriented(history: History, direction: str) -> History:
    """Read in this direction. A run without its value has not failed: the quantity was not measured."""
    sign = 1.0 if history.direction == direction else -1.0
    tasks, target, constant = (
        tuple(Task(t.name, t.u, sign * t.y) for t in part)
        for part in (history.tasks, [history.target] if history.target else [], history.constant)
    )
    return History(history.space, tasks, target[0] if target else None, direction, constant)


def with_measured(known: Known, about: Sequence[Named]) -> list[Trial]:
    """Old trials of the target, with what was measured in the same configuration."""
    found: dict[bytes, dict[str, float]] = {}
    for one in about:
        its = Known(old_runs_of(known.history, one), known.recipe, known.space, known.seed, known.folder)
        for t in its.trials:
            found.setdefault(t.u.tobytes(), {})[one.name] = one.sign * t.y
    return [replace(t, measured=found[t.u.tobytes()]) if t.u.tobytes() in found else t for t in known.trials]
