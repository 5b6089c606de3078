"""What is said of configurations: predictions in the user's units, and a suggestion with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jumbo_bo.explain import UNKNOWN, Bounds, Prediction, Said, explained, interval_reach, predictions, said
from jumbo_bo.known import Known
from jumbo_bo.measured import Measured
from jumbo_bo.methods import Choice, View
from jumbo_bo.models.gp import Blocks
from jumbo_bo.search.argmax import Domain
from jumbo_bo.search.sobol import over
from jumbo_bo.space.space import Params
from jumbo_bo.suggestion import Suggestion
from jumbo_bo.trials import Trial


@dataclass(frozen=True)
class Shown:
    domain: Domain
    known: Known
    measured: Measured
    sign: float
    bounds: Bounds

    def predictions(self, here: Said, view: View) -> list[Prediction]:
        reach = interval_reach(len(view.z), bool(self.known.warps))
        return predictions(here, view.warp, self.sign, reach, self.bounds)

    def suggestion(
        self, choice: Choice, view: View, number: int, told: Sequence[Trial], candidates: Sequence[Params] | None
    ) -> Suggestion:
        best = choice.best
        listed = candidates is not None and best.index is not None
        params = view.space.present(candidates[best.index]) if listed else view.space.decode(best.u)  # type: ignore[index]
        here, prediction, at = None, UNKNOWN, self.domain.featurise(best.u[None])
        if choice.surrogate is not None:
            here = said(choice.surrogate, at)
            (prediction,) = self.predictions(here, view)
        explanation = explained(choice, view, here, prediction, told, self._reference, self.known.witnesses)
        return Suggestion(number, params, self.measured.added(explanation, at))

    @cached_property
    def _reference(self) -> Blocks:
        """Points spread over the space, on which trust is measured."""
        return self.domain.featurise(over(self.known.space, 256, np.random.default_rng(0)))
