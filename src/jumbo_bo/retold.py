"""What an optimizer was told can be changed: as if it had never been told, or otherwise in the first place."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jumbo_bo import checks
from jumbo_bo.methods.base import Recipe
from jumbo_bo.space.space import Params, Space
from jumbo_bo.suggestion import Suggestion
from jumbo_bo.trials import Fits, Trial, Trials


class Retold:
    """For `Optimizer`."""

    space: Space
    recipe: Recipe
    _trials: list[Trial]
    _n_old: int
    _sign: float
    _fits: Fits
    _memory: dict[Hashable, Any]
    _told: tuple[int, Trials] | None

    def forget(self, configurations: Iterable[Suggestion | Mapping[str, Any]] | None = None) -> list[Params]:
        """Removes trials as if they had never been told, and returns their configurations: those of the given
        configurations, or all failed ones. They may be suggested again. Old data of the target stays."""
        told = self._trials[self._n_old :]
        points = None if configurations is None else checks.told_points(self.space, told, configurations)
        gone = [math.isnan(t.y) if points is None else t.u.tobytes() in points for t in told]
        self._retell([t for t, out in zip(told, gone, strict=True) if not out])
        return [t.params for t, out in zip(told, gone, strict=True) if out]

    def replace(self, suggestion: Suggestion | Mapping[str, Any], value: float) -> float:
        """Another value for a configuration that was told: as if it had been told in the first place. Returns the value
        that it had; NaN and infinities are failures here too."""
        return self._sign * self._replaced(suggestion, self._sign * checks.told_number(value), {}).y

    def _replaced(self, suggestion: Suggestion | Mapping[str, Any], y: float, also: Mapping[str, float]) -> Trial:
        """The trial as it was. What is not measured anew stays."""
        told = self._trials[self._n_old :]
        i = checks.told_once(self.space, told, suggestion)
        self._retell([*told[:i], replace(told[i], y=y, measured={**told[i].measured, **also}), *told[i + 1 :]])
        return told[i]

    def _retell(self, told: Sequence[Trial]) -> None:
        self._trials[self._n_old :] = told
        # They all follow one growing list of trials.
        self._fits, self._memory, self._told = Fits(self.recipe.most_trials), {}, None
