"""Models of the quantities that have limits, each with old runs of its own. They follow the trials of the objective.

Each is an optimizer of its quantity that is never asked: the same method, the same old runs, other values. What it says
of a point is used as a chance to meet the limit (methods/limits.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.limits import Limit, met
from jumbo_bo.data.warp import Warp
from jumbo_bo.explain import Explanation, doubt
from jumbo_bo.known import Known, Remembered
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Recipe, View
from jumbo_bo.methods.limits import Limits, log_chance
from jumbo_bo.models.gp import Blocks
from jumbo_bo.models.plausible import plausible, samples
from jumbo_bo.search.acquisition import Score
from jumbo_bo.trials import Trial
from jumbo_bo.wording import in_words

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


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
    limit: Limit
    model: Model

    def blocks(self, x: Array) -> dict[str, Array]:
        """What was learned of it from the old runs, for the domain of the objective: under names of its own."""
        past = self.model.past
        return {} if past is None else {self._name(name): block for name, block in past.blocks(x).items()}

    @property
    def known(self) -> bool:
        return self.model.past is not None or self.model.best is not None

    def log_chance(self, pending: Array) -> Score:
        view = replace(self.model.view(), pending=pending)
        surrogate = self.model.recipe.surrogate(view)
        assert surrogate is not None
        low, high = self._ends(view.warp)
        score = log_chance(surrogate.gps, low, high, doubt(len(view.z), self.model.past is not None))
        return lambda blocks: score(self.own(blocks))

    def allowed(self, blocks: Blocks, n: int, rng: np.random.Generator) -> Mask:  # (m, .) -> (m, n)
        """Joint samples of where the limit is met, with hyperparameters from their posterior."""
        view = self.model.view()
        surrogate = self.model.recipe.surrogate(view)
        assert surrogate is not None
        weights, gps = zip(*surrogate.gps, strict=True)
        (gp,) = plausible(gps[rng.choice(len(gps), p=weights)], 1, rng)
        f, (low, high) = samples(gp, self.own(blocks), n, rng), self._ends(view.warp)
        inside: Mask = (low <= f) & (f <= high)
        return inside

    def _ends(self, warp: Warp) -> tuple[float, float]:
        """Of the limit, on the scale of the models."""
        low, high = sorted((self.limit.sign * self.limit.low, self.limit.sign * self.limit.high))
        z = warp(np.array([low, high]))
        return (low if math.isinf(low) else float(z[0])), (high if math.isinf(high) else float(z[1]))

    def own(self, blocks: Blocks) -> Blocks:
        """Of the blocks of the objective's domain, those that this quantity's models ask for."""
        shared = {name: blocks[name] for name in ("1", "x")}
        prefix = self._name("")
        return shared | {name.removeprefix(prefix): b for name, b in blocks.items() if name.startswith(prefix)}

    def _name(self, block: str) -> str:
        return f"limit {self.limit.name}: {block}"


class Measured:
    """Of all limited quantities. `make` makes the model of one."""

    def __init__(self, limits: Sequence[Limit], make: Callable[[Limit], Model]) -> None:
        self.limits, self._make = tuple(limits), make
        self._quantities: list[Quantity] | None = None
        self._followed: list[Trial] = []
        self._kept: dict[bytes, Score] = {}

    def __bool__(self) -> bool:
        return bool(self.limits)

    @property
    def quantities(self) -> list[Quantity]:
        if self._quantities is None:
            self._quantities = [Quantity(limit, self._make(limit)) for limit in self.limits]
        return self._quantities

    def learn(self) -> None:
        """From the old runs, if that has not been done."""
        for q in self.quantities:
            _ = q.model.past

    def blocks(self, x: Array) -> dict[str, Array]:
        return {name: block for q in self.quantities for name, block in q.blocks(x).items()}

    def anew(self) -> Measured:
        """Before anything was told; what was learned from the old runs is shared."""
        fresh = Measured(self.limits, self._make)
        if self._quantities is not None:
            fresh._quantities = [Quantity(q.limit, q.model.restarted()) for q in self._quantities]
        return fresh

    def met(self, trial: Trial) -> bool:
        return met(self.limits, trial.measured)

    def follow(self, told: Sequence[Trial]) -> None:
        """All trials that were told, in order. When earlier ones have changed, it starts anew."""
        n = len(self._followed)
        if len(told) < n or any(a is not b for a, b in zip(self._followed, told, strict=False)):
            for q in self.quantities:
                q.model = q.model.restarted()
            n = 0
        for trial in told[n:]:
            for q in self.quantities:
                if q.limit.name in trial.measured:
                    q.model.tell(trial.params, trial.measured[q.limit.name])
        if n < len(told) or n != len(self._followed):
            self._kept = {}
        self._followed = list(told)

    def seen(self, told: Sequence[Trial], rows: Sequence[Trial]) -> Limits | None:
        """As the recipe sees them; `rows` are those of its view."""
        if not self.limits:
            return None
        self.follow(told)
        return Limits(np.array([self.met(t) for t in rows], dtype=bool), self._log_chance)

    def chances(self, blocks: Blocks) -> dict[str, float]:  # (1, .)
        """Of one point, after `follow`: of each limit of which anything is known."""
        none = np.zeros((0, blocks["x"].shape[1]))
        return {str(q.limit): math.exp(q.log_chance(none)(blocks)[0]) for q in self.quantities if q.known}

    def allowed(self, blocks: Blocks, n: int, rng: np.random.Generator) -> Mask:  # (m, .) -> (m, n)
        parts = [q.allowed(blocks, n, rng) for q in self.quantities if q.known]
        return np.asarray(np.all([np.ones((len(blocks["x"]), n), dtype=bool), *parts], axis=0))

    def added(self, known: Explanation, blocks: Blocks) -> Explanation:
        return with_limits(known, self.chances(blocks)) if self.limits else known

    def _log_chance(self, pending: Array) -> Score:
        key = pending.tobytes()
        if key not in self._kept:
            self._kept[key] = self._all([q.log_chance(pending) for q in self.quantities if q.known])
        return self._kept[key]

    @staticmethod
    def _all(scores: Sequence[Score]) -> Score:
        return lambda blocks: np.sum([np.zeros(len(blocks["x"])), *(score(blocks) for score in scores)], axis=0)


def with_limits(known: Explanation, chances: Mapping[str, float]) -> Explanation:
    """Also how likely the trial meets each limit."""
    if not chances:
        return known
    said = " and ".join(f"{limit} with {in_words(chance)}" for limit, chance in chances.items())
    return replace(known, why=f"{known.why} Meets {said}.", limits=dict(chances))


def quantity_history(history: History, limit: Limit) -> History | None:
    """Old runs of a limited quantity, larger is better; None when they have no column of it."""
    its = history.limits.get(limit.name)
    return None if its is None else oriented(its, limit.direction)


def old_runs_of(history: History | Past | Remembered | None, limit: Limit) -> History | Remembered | None:
    if isinstance(history, Remembered):
        return history.limits.get(limit.name)
    return quantity_history(history, limit) if isinstance(history, History) else None


def oriented(history: History, direction: str) -> History:
    """Read in this direction. A run without its value has not failed: the quantity was not measured."""
    sign = 1.0 if history.direction == direction else -1.0
    tasks, target, constant = (
        tuple(Task(t.name, t.u, sign * t.y) for t in part)
        for part in (history.tasks, [history.target] if history.target else [], history.constant)
    )
    return History(history.space, tasks, target[0] if target else None, direction, constant)


def with_measured(known: Known, limits: Iterable[Limit]) -> list[Trial]:
    """Old trials of the target, with what was measured in the same configuration."""
    found: dict[bytes, dict[str, float]] = {}
    for limit in limits:
        its = Known(old_runs_of(known.history, limit), known.recipe, known.space, known.seed, known.folder)
        for t in its.trials:
            found.setdefault(t.u.tobytes(), {})[limit.name] = limit.sign * t.y
    return [replace(t, measured=found[t.u.tobytes()]) if t.u.tobytes() in found else t for t in known.trials]
