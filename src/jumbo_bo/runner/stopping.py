"""The stopping rule of a study, [stop] in study.toml: is an improvement that matters still likely enough?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jumbo_bo.errors import InputError, UserError
from jumbo_bo.studies import REMAINING

if TYPE_CHECKING:
    from jumbo_bo.optimizer import Optimizer
    from jumbo_bo.study.study_file import Stop

FEWEST = 5  # finished trials with a value before a rule may end a run


class Stopping:
    """Computes the chance once for every number of finished trials. Without a rule nothing is computed or kept."""

    def __init__(self, rule: Stop | None) -> None:
        self.rule, self.chance = rule, math.nan
        self._seen: tuple[Optimizer | None, int] = None, 0

    def reached(self, optimizer: Optimizer) -> bool:
        """After what the optimizer was told."""
        self.look(optimizer)
        values = sum(not math.isnan(y) for _, y in optimizer.told)
        return self.rule is not None and self.chance < self.rule.chance and values >= FEWEST

    def look(self, optimizer: Optimizer) -> None:
        seen = optimizer, len(optimizer.told)  # another optimizer follows a study that was corrected
        if self.rule is not None and seen != self._seen:
            try:
                self.chance = optimizer.remaining(self.rule.gain)
            except InputError as error:
                raise UserError(f"[stop] needs a model: {error}. Choose another method, or leave [stop] out") from error
            self._seen = seen

    def attributes(self) -> dict[str, Any]:
        """What is kept with the trial that is started now."""
        if self.rule is None:
            return {}
        return {REMAINING: {"gain": self.rule.gain, "chance": self.chance}}
