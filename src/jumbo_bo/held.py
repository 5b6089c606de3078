"""Some parameters of a trial are fixed, such as those of an enqueued trial: the others are chosen around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jumbo_bo.search import candidates
from jumbo_bo.space.space import Params

if TYPE_CHECKING:
    from jumbo_bo.optimizer import Optimizer


def holding(optimizer: Optimizer, fixed: Params, number: int) -> Optimizer:
    """An optimizer that moves only the other parameters, for trial `number`. What was learned is shared with it."""
    rng = np.random.default_rng([optimizer.seed, number])
    return optimizer.restarted(candidates.holding(optimizer.space, fixed, rng, optimizer.candidates))
