"""Quantities that have limits: what their models say of a point is used as a chance to meet the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.limits import Limit, met
from jumbo_bo.data.warp import Warp
from jumbo_bo.explain import Explanation, doubt
from jumbo_bo.methods.limits import Limits, log_chance
from jumbo_bo.models.gp import Blocks
from jumbo_bo.models.plausible import plausible, samples
from jumbo_bo.quantities import Model, Quantities, Quantity
from jumbo_bo.search.acquisition import Score
from jumbo_bo.trials import Trial
from jumbo_bo.wording import in_words

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass
class Limited(Quantity):
    about: Limit

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
        low, high = sorted((self.about.sign * self.about.low, self.about.sign * self.about.high))
        z = warp(np.array([low, high]))
        return (low if math.isinf(low) else float(z[0])), (high if math.isinf(high) else float(z[1]))


class Measured(Quantities):
    """Of all limited quantities."""

    kind = Limited

    def __init__(self, about: Sequence[Limit], make: Callable[[Limit], Model]) -> None:
        super().__init__(about, make)
        self._kept: dict[bytes, Score] = {}

    def _changed(self) -> None:
        self._kept = {}

    def met(self, trial: Trial) -> bool:
        return met(self.about, trial.measured)

    def seen(self, told: Sequence[Trial], rows: Sequence[Trial]) -> Limits | None:
        """As the recipe sees them; `rows` are those of its view. The models know old data of the target already."""
        if not self.about:
            return None
        self.follow(told)
        return Limits(np.array([self.met(t) for t in rows], dtype=bool), self._log_chance)

    def chances(self, blocks: Blocks) -> dict[str, float]:  # (1, .)
        """Of one point, after `follow`: of each limit of which anything is known."""
        none = np.zeros((0, blocks["x"].shape[1]))
        return {str(q.about): math.exp(q.log_chance(none)(blocks)[0]) for q in self.quantities if q.known}

    def allowed(self, blocks: Blocks, n: int, rng: np.random.Generator) -> Mask:  # (m, .) -> (m, n)
        parts = [q.allowed(blocks, n, rng) for q in self.quantities if q.known]
        return np.asarray(np.all([np.ones((len(blocks["x"]), n), dtype=bool), *parts], axis=0))

    def added(self, known: Explanation, blocks: Blocks) -> Explanation:
        return with_limits(known, self.chances(blocks)) if self.about else known

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
