"""What the optimizer returns: a suggestion with its reasons, and the best trial so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jumbo_bo.explain import Explanation, Prediction
from jumbo_bo.notebook import html_of_suggestion
from jumbo_bo.space.space import Params


@dataclass(frozen=True)
class Suggestion:
    number: int  # 0, 1, ... within the study
    params: Params
    explanation: Explanation

    @property
    def why(self) -> str:
        return self.explanation.why

    @property
    def predicted(self) -> Prediction:
        """In the user's units."""
        return self.explanation.predicted

    def _repr_html_(self) -> str:
        return html_of_suggestion(self)


class BestTrial(NamedTuple):
    params: Params
    value: float
